"""What is told when there is no connection, and for how long."""

from __future__ import annotations

import pytest
from playwright.sync_api import Route, expect

from stacl.live.translator import Translator
from stacl.server.settings import Settings
from tests.server.conftest import serving
from tests.server.page.conftest import Visitor
from tests.server.page.steps import connected, eventually


def test_a_server_that_is_full_is_waited_for(visit: Visitor, models: dict[str, Translator]) -> None:
    reason = "The server is full. Retrying…"
    with serving(models, sessions=1) as server:
        first = connected(visit(url=server.url))
        captions = visit("?view=captions&source=type", url=server.url)
        expect(captions.locator("#captions-note")).to_have_text(reason)
        captions.evaluate("""() => {
          window.notes = [];
          const look = () => notes.push(document.querySelector("#captions-note").textContent);
          new MutationObserver(look).observe(document.querySelector("#captions-note"), { childList: true });
        }""")
        eventually(captions, lambda: captions.evaluate("notes.length") > 0)
        assert set(captions.evaluate("notes")) == {reason}  # it stays, however often it is tried
        captions.context.close()
        page = visit(url=server.url)
        expect(page.locator("#connection-text")).to_have_text(reason)
        first.context.close()
        assert not connected(page).locator("#alerts").inner_text()
        page.context.close()


def test_why_there_is_no_connection_is_told_until_there_is_one(visit: Visitor) -> None:
    away = [True]

    def about_models(route: Route) -> None:
        _ = route.abort() if away.pop() else route.continue_()
        away.append(False)

    page = visit(prepare=lambda page: page.route("**/models", about_models))
    expect(page.get_by_role("alert")).to_contain_text("The server does not answer.")
    page.click("#connection")
    assert not connected(page).locator("#alerts").inner_text()
    assert visit.problems.pop().startswith("Failed to load resource")  # the browser's own word


def test_a_refused_start_is_explained(visit: Visitor, models: dict[str, Translator]) -> None:
    with serving(models, tracks=2) as server:
        page = visit(url=server.url)
        expect(page.get_by_role("alert")).to_contain_text("a session has 1 to 2 policies, not 6")
        expect(page.locator("#connection-text")).to_have_text("Not connected. Retry")
        page.context.close()


def test_the_token_is_used_and_leaves_the_address(visit: Visitor, models: dict[str, Translator]) -> None:
    with serving(models, Settings(token="secret", workers=1)) as server:
        page = connected(visit("?token=secret&k=2", url=server.url))
        assert page.url == f"{server.url}/?k=2"
        page.reload()
        connected(page)
        other = visit("?token=wrong", url=server.url)
        expect(other.get_by_role("alert")).to_contain_text("the token is missing or wrong")
        page.context.close()
        other.context.close()
    assert visit.problems.pop().startswith("Failed to load resource")  # the browser's own word about 401


@pytest.mark.parametrize(
    ("answered", "explanation", "state"),
    [
        (1, "the token is missing or wrong", "Not connected. Retry"),  # as after a restart with another token
        (99, "The server answers, but the live connection is refused", "Connection lost. Retrying…"),
    ],
)
def test_a_connection_that_does_not_open_is_explained(
    visit: Visitor, models: dict[str, Translator], answered: int, explanation: str, state: str
) -> None:
    """A browser does not tell a page why a websocket was refused."""
    asked = 0

    def about_models(route: Route) -> None:
        nonlocal asked
        asked += 1
        content = {"models": [{"name": "de-en", "source": "de", "target": "en", "policy": "wait-k:2"}]}
        _ = route.fulfill(json=content) if asked <= answered else route.continue_()

    with serving(models, Settings(token="secret", workers=1)) as server:
        page = visit("?token=old", url=server.url, prepare=lambda page: page.route("**/models", about_models))
        expect(page.get_by_role("alert")).to_contain_text(explanation)
        expect(page.locator("#connection-text")).to_have_text(state)
        page.context.close()
    assert all("401" in text or text.startswith("WebSocket") for text in visit.problems)  # the browser's own words
    visit.problems.clear()
