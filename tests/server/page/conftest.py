"""The page in a real browser, with a real server and an engine that repeats what it hears behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from stacl.live.translator import Translator
from stacl.text.subwords import END
from tests.helpers import random_translator
from tests.server.conftest import Running, serving


class Parrot:
    """An engine that repeats what it hears, so that everybody knows what must be on the page."""

    def __init__(self, vocabulary: int) -> None:
        self._vocabulary = vocabulary

    def start(self, size: int = 1) -> tuple[np.ndarray, int]:
        return np.zeros((size, 0), dtype=np.int64), 0

    def read(self, state: tuple[np.ndarray, int], pieces: np.ndarray) -> tuple[np.ndarray, int]:
        return np.concatenate((state[0], pieces), axis=1), state[1]

    def write(
        self, state: tuple[np.ndarray, int], previous: np.ndarray, visible: np.ndarray | None = None
    ) -> tuple[tuple[np.ndarray, int], np.ndarray]:
        source, said = state
        logits = np.zeros((len(source), self._vocabulary), dtype=np.float32)
        logits[:, source[0, said] if said < source.shape[1] else END] = 10.0
        return (source, said + 1), logits

    def select(self, state: tuple[np.ndarray, int], rows: np.ndarray) -> tuple[np.ndarray, int]:
        return state[0][rows], state[1]


@pytest.fixture(scope="module")
def models() -> dict[str, Translator]:
    drafts = {"de-en": random_translator(), "zh-en": random_translator(source="zh")}
    return {
        name: Translator(draft.manifest, Parrot(len(draft.target_pieces)), draft.source_pieces, draft.target_pieces)
        for name, draft in drafts.items()
    }


@pytest.fixture(scope="module")
def server(models: dict[str, Translator]) -> Iterator[Running]:
    with serving(models) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def patience() -> None:
    expect.set_options(timeout=20_000)


class Visitor:
    """Opens the page, and keeps what goes wrong in it."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser, self._url = browser, url
        self._contexts: list[Any] = []
        self.problems: list[str] = []
        # A tab that is there already loads the page twice as fast as a new one.
        self._tab = self._watched(browser.new_context(reduced_motion="reduce").new_page())

    def __call__(
        self, query: str = "", url: str = "", prepare: Callable[[Any], object] | None = None, **options: Any
    ) -> Page:
        page = self._tab
        if url or prepare or options:
            self._contexts.append(self._browser.new_context(reduced_motion="reduce", **options))
            page = self._watched(self._contexts[-1].new_page())
        if prepare:
            prepare(page)
        page.goto(f"{url or self._url}/{query}")
        return page

    def beside(self, page: Page, query: str) -> Page:
        """Another tab of the same window."""
        other = self._watched(page.context.new_page())
        other.goto(f"{self._url}/{query}")
        return other

    def leave(self) -> None:
        """Everything as new."""
        for context in self._contexts:
            context.close()
        self._contexts.clear()
        if self._tab.url.startswith(self._url):
            self._tab.evaluate("() => { localStorage.clear(); sessionStorage.clear(); }")
            self._tab.goto("about:blank")
        for other in self._tab.context.pages:
            if other is not self._tab:
                other.close()

    def _watched(self, page: Page) -> Page:
        page.on("dialog", lambda question: question.accept())  # "Leave the page?"
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        return page


@pytest.fixture(scope="module")
def visitor(browser: Browser, server: Running) -> Visitor:
    return Visitor(browser, server.url)


@pytest.fixture
def visit(visitor: Visitor) -> Iterator[Visitor]:
    """Open the page; at the end of the test nothing may have gone wrong in it."""
    visitor.problems.clear()
    yield visitor
    visitor.leave()
    assert not visitor.problems
