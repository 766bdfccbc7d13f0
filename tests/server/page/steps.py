"""What a visitor does, and what there is to be seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

SENTENCE = "Ein Mann schläft hier."


POLICIES = ["wait-k:4", "wait-k:1", "wait-k:3", "wait-k:5", "wait-k:9", "full"]  # of the rows, from the top


def connected(page: Page) -> Any:
    expect(page.locator("#connection-text")).to_have_text("Connected")
    return page


def eventually(page: Page, condition: Callable[[], bool]) -> None:
    """Until something is so that the page itself does not show."""
    for _ in range(1000):
        if condition():
            return
        page.wait_for_timeout(20)
    raise AssertionError("it did not happen")


def enter(page: Page, text: str) -> None:
    """Type, but in one go."""
    field = page.locator("#type")
    field.fill(field.input_value() + text)


def words(page: Page, selector: str) -> list[str]:
    """The words on show, without what only screen readers are told."""
    return page.locator(f"{selector} .word").evaluate_all("found => found.map(word => word.firstChild.textContent)")


def heard(page: Page) -> list[str]:
    return words(page, "#heard .now")


def wait_for_words(page: Page, selector: str, count: int) -> None:
    expect(page.locator(f"{selector} .word")).to_have_count(count)


def wait_until_said(page: Page, sentences: int = 1) -> None:
    """Until so many sentences on the stage are complete on all tracks."""
    expect(page.locator(".lane .said")).to_have_count(len(POLICIES) * sentences)


def said(page: Page) -> list[str]:
    """The present sentence of every track."""
    lanes = page.locator(".lane p:last-child")
    return [" ".join(words(page, f".lane >> nth={i} >> p:last-child")) for i in range(lanes.count())]
