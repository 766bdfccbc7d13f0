"""Words in, words out: what is typed is heard and said, on every track."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.server.conftest import Running
from tests.server.page.conftest import Visitor
from tests.server.page.steps import (
    POLICIES,
    SENTENCE,
    connected,
    enter,
    heard,
    said,
    wait_for_words,
    wait_until_said,
    words,
)

HTML = "<img src=x onerror=document.title='run'><script>document.title='run'</script>"


def test_a_typed_sentence_is_heard_and_said(visit: Visitor, server: Running) -> None:
    page = connected(visit())
    field = page.locator("#type")
    field.press_sequentially("Ein Mann schl")
    wait_for_words(page, "#heard .now", 2)
    assert field.input_value() == "schl"  # only the unfinished word can still be edited
    field.press("Backspace")
    field.press_sequentially("läft hier.")
    field.press("Enter")
    wait_until_said(page)
    assert heard(page) == SENTENCE.split()
    assert said(page) == [SENTENCE] * len(POLICIES)
    assert field.input_value() == ""
    assert page.locator("#own .lane").get_attribute("aria-live") == "polite"
    assert page.locator("[aria-live]:visible").count() == 1


def test_several_k_side_by_side(visit: Visitor, server: Running) -> None:
    page = connected(visit())
    enter(page, "Ein Mann ")
    wait_for_words(page, ".track[data-tone='1']", 2)
    assert not words(page, ".track[data-tone='3']")
    enter(page, "schläft ")
    wait_for_words(page, ".track[data-tone='3']", 1)
    assert not words(page, ".track[data-tone='5']")
    assert re.fullmatch(r"3 words · [\d,]+ ms", page.locator(".track[data-tone='3'] .lag-now").inner_text())
    enter(page, "hier.\n")
    wait_until_said(page)
    assert words(page, ".track[data-tone='full']") == SENTENCE.split()
    assert "AL 4.0" in page.locator(".track[data-tone='full'] .lag-mean").inner_text()


def test_the_slider_works_mid_sentence(visit: Visitor) -> None:
    page = connected(visit("?k=9"))
    enter(page, "Ein Mann schläft auf ")
    wait_for_words(page, ".track[data-tone='1']", 4)
    assert not words(page, "#own")
    slider = page.get_by_label("How long your track waits")
    slider.focus()
    for _ in range(7):
        slider.press("ArrowLeft")
    wait_for_words(page, "#own", 3)
    assert slider.get_attribute("aria-valuetext") == "2 words"
    before = words(page, "#own")
    slider.fill("13")
    enter(page, "dem Sofa.")
    wait_for_words(page, ".track[data-tone='1']", 5)
    assert words(page, "#own") == before  # it waits for the end now, and takes nothing back
    page.locator("#type").press("Enter")
    wait_until_said(page)
    assert words(page, "#own")[:3] == before
    assert page.locator("#stairs-name").inner_text() == "full sentence"


def test_the_staircase_of_a_track_that_is_hidden_gives_way(visit: Visitor) -> None:
    page = connected(visit())
    page.locator(".track[data-tone='3'] button").click()
    expect(page.locator("#stairs-name")).to_have_text("wait 3")
    page.locator(".chip[data-tone='3']").click()
    expect(page.locator("#stairs-name")).to_have_text("wait 4")


def test_html_stays_text(visit: Visitor) -> None:
    page = connected(visit())
    enter(page, f"{HTML} ist ")
    wait_for_words(page, "#heard .now", 4)
    assert " ".join(heard(page)) == f"{HTML} ist"
    page.locator("#type").press("Enter")
    wait_until_said(page)
    page.click("#transcript-open")
    assert HTML in page.locator("#transcript-lines").inner_text()
    assert page.locator("img, body script").count() == 0
    assert "stacl" in page.title()


def test_chinese_needs_no_spaces(visit: Visitor, server: Running) -> None:
    page = connected(visit("?model=zh-en"))
    field = page.locator("#type")
    field.click()
    keyboard = page.context.new_cdp_session(page)
    keyboard.send("Input.imeSetComposition", {"text": "ta", "selectionStart": 2, "selectionEnd": 2})
    assert field.input_value() == "ta"  # what is composed is not sent
    keyboard.send("Input.insertText", {"text": "他还说现在"})
    wait_for_words(page, "#heard .now", 2)
    assert field.input_value() == ""
    # What later characters may still change is shown as sent and not heard.
    assert "".join(heard(page)) + page.locator(".pending").inner_text() == "他还说现在"
    field.press_sequentially("正在学习。\n")
    wait_until_said(page)
    assert heard(page) == server.models["zh-en"].source_language.split("他还说现在正在学习。")
    assert page.locator("#heard").get_attribute("lang") == "zh"
    assert page.locator("#own .lane").get_attribute("lang") == "en"


def test_the_direction_can_be_switched(visit: Visitor) -> None:
    page = connected(visit())
    page.get_by_label("Languages").select_option("zh-en")
    connected(page)
    enter(page, "你好。\n")
    wait_for_words(page, "#heard .now", 2)
    assert page.locator("#source-name").inner_text() == "Chinese"
    page.locator("#example").select_option("1")  # the stage is cleared for it
    assert page.locator(".upcoming").inner_text() == "他还说现在正在为这一访问作出安排。"
    assert not heard(page)
    assert not said(page)


def test_what_was_not_heard_yet_does_not_turn_up_in_the_next_text(visit: Visitor, server: Running) -> None:
    page = connected(visit("?model=zh-en&pace=2400"))
    enter(page, "你好")
    expect(page.locator(".pending")).to_have_text("你好")  # more characters may belong to the word
    page.locator("#example").select_option("1")
    page.click("#play")
    wait_until_said(page)
    assert heard(page) == server.models["zh-en"].source_language.split("他还说现在正在为这一访问作出安排。")
    page.click("#transcript-open")
    assert "你好" in page.locator("#transcript-lines").inner_text()


def test_the_staircase_is_drawn_and_told(visit: Visitor) -> None:
    page = connected(visit("?k=1"))
    enter(page, "Ein Mann ")
    wait_for_words(page, "#own", 2)
    told = page.locator("#stairs-text")
    first, second = words(page, "#own")
    expect(told).to_have_text(f"wait 1, 2 source words: after 1 “{first}”, after 2 “{second}”.")
    steps = page.locator(".track-path.chosen .stairs").get_attribute("d")
    assert len(re.findall("V", steps)) == 2
    page.get_by_role("button", name="wait 3: show the staircase").click()
    expect(told).to_have_text("wait 3, 2 source words: nothing written yet.")
    assert page.locator(".target-label").count() == 0
    assert page.locator(".source-label").all_text_contents() == ["Ein", "Mann"]
