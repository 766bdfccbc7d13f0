"""That the page fits every screen, and that what is on it can be read."""

from __future__ import annotations

import itertools
import re

from playwright.sync_api import expect

from tests.server.page.conftest import Visitor
from tests.server.page.steps import connected, enter, wait_for_words, wait_until_said

PHONE = {"width": 390, "height": 844}
SIZE = "() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
STATES = "() => import('/states.js').then(({ STATES, REASONS }) => Object.values({ ...STATES, ...REASONS }))"


def test_it_fits_the_screen(visit: Visitor) -> None:
    page = connected(visit("?pace=2400", viewport=PHONE))
    page.click("#play")
    wait_until_said(page)
    # As it is called where several models are for the same languages.
    page.locator("#model option").first.evaluate("option => { option.textContent += ' (photos-de-en)'; }")
    for width, state in itertools.product((320, 390, 768, 820, 1024), page.evaluate(STATES)):
        page.set_viewport_size({"width": width, "height": 844})
        page.evaluate("text => { document.querySelector('#connection-text').textContent = text; }", state)
        assert page.evaluate(SIZE)[0] == width  # phones and tablets scroll down, never sideways
    for width, height in ((1280, 720), (1440, 900), (1920, 1080)):
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate(SIZE) == [width, height]  # a screen on a wall does not scroll at all


def test_a_long_sentence_leaves_the_translation_on_a_phone(visit: Visitor) -> None:
    page = connected(visit("?k=1", viewport=PHONE))
    lane = page.locator("#own .lane")
    enter(page, "Ein Mann ")
    wait_for_words(page, "#own", 2)
    expect(lane).not_to_have_class(re.compile("brimming"))
    enter(page, "schläft hier " * 32)
    wait_for_words(page, "#own", 66)
    last = page.locator("#own .word").last.bounding_box()
    assert last["y"] + last["height"] < PHONE["height"]
    for pane in (lane, page.locator(".heard")):
        expect(pane).to_have_class(re.compile("brimming"))  # the lines above fade


def test_labels_of_the_staircase_are_not_cut(visit: Visitor) -> None:
    page = connected(visit(viewport=PHONE))
    drawn = """(target) => import("/staircase.js").then(({ draw }) => {
      draw(document.querySelector("#stairs"), { source: [], target, paths: [], dots: [] });
      const labels = [...document.querySelectorAll(".target-label")];
      return [labels.map((label) => label.textContent), Math.min(...labels.map((label) => label.getBBox().x))];
    })"""
    labels, left = page.evaluate(drawn, ["wait", "gentlemen.", "中华人民共和国成立以来", "Wohnungsgesellschaft"])
    assert left >= 0
    assert labels == ["wait", "gentle…", "中华人…", "Wohnun…"]


def test_notes_are_about_the_languages_in_hand(visit: Visitor) -> None:
    titles = """([source, target]) => import("/examples.js").then(({ examplesFor }) =>
      examplesFor(source, target).map(({ title, note }) => `${title}: ${note}`))"""
    page = connected(visit())
    assert "Chinese needs" in page.evaluate(titles, ["en", "zh"])[0]
    german = page.evaluate(titles, ["en", "de-AT"])
    assert german
    assert "Chinese" not in " ".join(german)
