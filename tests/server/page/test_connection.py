"""What comes over the wire, and what becomes of the page when nothing comes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from stacl.live.translator import Translator
from tests.server.conftest import Running, serving
from tests.server.page.conftest import Visitor
from tests.server.page.steps import (
    POLICIES,
    SENTENCE,
    connected,
    enter,
    eventually,
    heard,
    said,
    wait_for_words,
    wait_until_said,
    words,
)

STARTED: dict[str, Any] = {
    "type": "started",
    "session": "s",
    "model": "de-en",
    "source": "de",
    "target": "en",
    "policies": POLICIES,
}
STARTED |= {"limits": {"message_bytes": 65_536}}


class Cable:
    """Between the page and the server; it can be pulled."""

    def __init__(self, page: Page) -> None:
        self._plugged = True
        self._ends: tuple[WebSocketRoute, ...] = ()
        page.route_web_socket("**/live", self._connect)

    def _connect(self, socket: WebSocketRoute) -> None:
        if self._plugged:
            self._ends = (socket, socket.connect_to_server())
        else:
            socket.close(code=4000)

    def pull(self) -> None:
        self._plugged = False
        for end in self._ends:
            end.close(code=4000)

    def plug(self) -> None:
        self._plugged = True


def test_after_a_drop_nothing_is_lost_or_repeated(visit: Visitor, server: Running) -> None:
    cables: list[Cable] = []
    page = connected(visit(prepare=lambda page: cables.append(Cable(page))))
    enter(page, "Ein Mann schläft ")
    wait_for_words(page, "#heard .now", 3)
    cables[0].pull()
    expect(page.locator("#offline")).to_be_visible()
    enter(page, "hier. ")
    assert page.locator(".pending").inner_text().strip() == "hier."  # shown as not heard yet
    cables[0].plug()
    page.evaluate("dispatchEvent(new Event('online'))")  # then it does not wait for its next turn
    wait_until_said(page)
    assert heard(page) == SENTENCE.split()
    assert said(page) == [SENTENCE] * len(POLICIES)
    assert page.locator("#offline").is_hidden()
    assert page.locator("#connection-text").inner_text() == "Connected"


def test_a_session_that_was_lost_is_replaced(visit: Visitor, models: dict[str, Translator]) -> None:
    cables: list[Cable] = []
    with serving(models, resume_seconds=0.2) as server:
        page = connected(visit(url=server.url, prepare=lambda page: cables.append(Cable(page))))
        enter(page, "Ein Mann ")
        wait_for_words(page, "#heard .now", 2)
        cables[0].pull()
        eventually(page, lambda: not server.hub.sessions)
        enter(page, "Eine Frau lacht.\n")
        cables[0].plug()
        page.evaluate("dispatchEvent(new Event('online'))")
        wait_until_said(page)
        assert heard(page) == ["Eine", "Frau", "lacht."]
        assert not page.locator("#alerts").inner_text()  # nobody has to do anything about it
        page.context.close()


def test_a_silent_session_falls_asleep_and_wakes(visit: Visitor, models: dict[str, Translator]) -> None:
    with serving(models, idle_seconds=0.5) as server:
        page = visit(url=server.url)
        expect(page.locator("#connection-text")).to_have_text("Idle until new text")
        assert not page.locator("#alerts").inner_text()
        enter(page, "Ein Mann\n")
        wait_for_words(page, "#heard .now", 2)
        page.context.close()


def test_an_error_is_shown_until_it_is_dismissed(visit: Visitor, server: Running) -> None:
    def answering(socket: WebSocketRoute) -> None:
        def answer(text: str | bytes) -> None:
            asked = json.loads(text)
            mistake = {"type": "error", "code": "bad-message", "message": "expected <b>other</b> text", "fatal": False}
            socket.send(json.dumps(STARTED if asked["type"] == "start" else mistake))

        socket.on_message(answer)

    page = connected(visit(prepare=lambda page: page.route_web_socket("**/live", answering)))
    enter(page, "Ein ")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("expected <b>other</b> text")
    alert.get_by_role("button", name="Dismiss").click()
    assert not alert.inner_text()


def scripted(*messages: dict[str, Any], sent: list[dict[str, Any]] | None = None) -> Callable[[Any], None]:
    """A server that says these messages to whoever starts a session, and keeps what it is sent."""

    def answer(socket: WebSocketRoute) -> None:
        def begin(text: str | bytes) -> None:
            asked = json.loads(text)
            if sent is not None:
                sent.append(asked)
            if asked["type"] != "start":
                return
            socket.send(json.dumps(STARTED))
            for n, message in enumerate(messages, 1):
                socket.send(json.dumps({"n": n} | message))

        socket.on_message(begin)

    return lambda page: page.route_web_socket("**/live", answer)


def test_anticipated_words_are_marked(visit: Visitor) -> None:
    source, target, delays = ["Er", "hat", "gelacht."], ["He", "laughed", "loudly."], [1, 2, 3]
    heard = [{"type": "heard", "segment": 0, "index": i + 1, "text": word, "gap": " "} for i, word in enumerate(source)]
    place = {"track": 0, "segment": 0}
    word = {"type": "word", **place, "gap": " ", "seconds": 0.5, "waited": 0.01}
    written = [word | {"index": t + 1, "text": target[t], "delay": delays[t]} for t in range(3)]
    times = [0.0, 0.2, 0.4]
    done = {"type": "segment", **place, "policy": "wait-k:1", "source": source, "target": target, "delays": delays}
    done |= {"read_times": times, "write_times": times, "latency": {"AL": 1.0}, "alignment": [1, 3, None]}
    page = connected(visit(prepare=scripted(*heard, *written, done)))
    marked = page.locator("#own .anticipated")
    wait_for_words(page, "#own", 3)
    assert marked.count() == 1
    assert marked.text_content() == "laughed (anticipated)"
    assert marked.get_attribute("title") == "Anticipated: written after 2 source words; “gelacht.” is source word 3."
    expect(page.locator(".dot")).to_have_count(2)  # drawn with the next frame
    expect(page.locator(".dot.ahead")).to_have_count(1)


def test_messages_that_come_twice_or_with_a_hole_do_no_harm(visit: Visitor) -> None:
    heard = {"type": "heard", "segment": 0, "gap": " "}
    first, second = heard | {"index": 1, "text": "Ein"}, heard | {"index": 2, "text": "Mann"}
    sent: list[dict[str, Any]] = []
    page = visit(prepare=scripted(first, first | {"n": 1}, second | {"n": 2}, heard | {"n": 4}, sent=sent))
    eventually(page, lambda: sent[-1:] == [{"type": "resume", "session": "s", "received": 2}])
    assert words(page, "#heard .now") == ["Ein", "Mann"]


def test_a_long_paste_goes_in_pieces(visit: Visitor) -> None:
    sent: list[dict[str, Any]] = []
    page = connected(visit(prepare=scripted(sent=sent)))
    enter(page, "Ein Mann. " * 1200 + "💡" * 8)
    eventually(page, lambda: len(sent) == 3)
    assert "".join(message.get("text", "") for message in sent) == "Ein Mann. " * 1200
    assert [message.get("seq") for message in sent] == [None, 1, 2]
    cut = "import('/connection.js').then(found => found.pieces('a' + '💡'.repeat(9000), 8000).map(cut => cut.length))"
    assert page.evaluate(cut) == [7999, 8000, 2002]


WITHOUT_A_SERVER = """async () => {
  const { Connection } = await import("/connection.js");
  const sent = [];
  let last;
  globalThis.WebSocket = class {
    constructor() { last = this; }
    send(text) { sent.push(JSON.parse(text)); }
    close() {}
  };
  const nothing = () => {};
  const on = { state: nothing, started: nothing, message: nothing, error: nothing };
  const connection = new Connection(new URL(location), on);
  connection.start(() => ({}));
  for (let i = 0; i < 5000; i++) connection.send("text", { text: `w${i} ` });
  last.onopen();
  last.onmessage({ data: JSON.stringify({ type: "started", session: "s", limits: { message_bytes: 1024 } }) });
  connection.send("text", { text: "x".repeat(300) });
  return sent;
}"""


def test_all_that_is_said_before_the_server_answers_is_sent_in_messages_that_it_takes(visit: Visitor) -> None:
    begun, *sent = connected(visit(prepare=scripted())).evaluate(WITHOUT_A_SERVER)
    assert begun["type"] == "start"
    assert "".join(message["text"] for message in sent) == "".join(f"w{i} " for i in range(5000)) + "x" * 300
    assert [message["seq"] for message in sent] == list(range(1, len(sent) + 1))
    assert max(len(message["text"]) for message in sent) <= 128


WHAT_WAS_NOT_TAKEN = """async (code) => {
  const { Connection } = await import("/connection.js");
  const sessions = [];
  let last;
  globalThis.WebSocket = class {
    constructor() { last = this; sessions.push([]); setTimeout(() => this.onopen()); }
    send(text) { sessions.at(-1).push(JSON.parse(text)); }
    close() {}
  };
  const answer = (message) => last.onmessage({ data: JSON.stringify(message) });
  const begin = () => answer({ type: "started", session: "s", limits: { message_bytes: 1024 } });
  const nothing = () => {};
  const errors = [];
  const on = { state: nothing, started: nothing, message: nothing, error: ({ code }) => errors.push(code) };
  const connection = new Connection(new URL(location), on);
  const turn = () => new Promise((done) => setTimeout(done, 600));
  connection.start(() => ({}));
  await turn();
  begin();
  for (const word of ["taken ", "lost? "]) connection.send("text", { text: word });
  answer({ type: "error", code, fatal: true, message: "", accepted: 1 });
  connection.send("text", { text: "after " });
  last.onclose();
  await turn();
  if (code !== "idle") {
    answer({ type: "error", code: "unknown-session", fatal: true, message: "" });
    last.onclose();
    await turn();
    await turn();
  }
  begin();
  const texts = (sent) => sent.filter(({ type }) => type === "text").map(({ text }) => text).join("");
  return [errors, ...sessions.map(texts)];
}"""


@pytest.mark.parametrize("code", ["shutdown", "idle"])
def test_what_a_session_did_not_take_goes_into_the_next(visit: Visitor, code: str) -> None:
    errors, first, *_, last = connected(visit(prepare=scripted())).evaluate(WHAT_WAS_NOT_TAKEN, code)
    assert not errors  # what mends itself is no error
    assert first == "taken lost? "
    assert last == "lost? after "


def test_an_answer_that_does_not_come(visit: Visitor) -> None:
    """A connection may be dead without anybody saying so."""
    sent: list[dict[str, Any]] = []
    page = visit(prepare=lambda page: (page.clock.install(), scripted(sent=sent)(page)))
    eventually(page, lambda: [message["type"] for message in sent] == ["start"])
    page.clock.run_for(60_000)  # nothing said, nothing awaited
    enter(page, "Ein ")
    eventually(page, lambda: [message["type"] for message in sent] == ["start", "text"])
    page.clock.run_for(16_000)
    eventually(page, lambda: sent[-1:] == [{"type": "resume", "session": "s", "received": 0}])


def test_a_session_that_is_left_says_its_last_words(visit: Visitor) -> None:
    page = connected(visit())
    enter(page, "Ein Mann schläft ")
    wait_for_words(page, "#heard .now", 3)
    page.locator("#model").select_option("zh-en")
    expect(page.locator("#source-name")).to_have_text("Chinese")
    enter(page, "你好。\n")
    wait_until_said(page)
    assert "Mann" not in page.locator("#tracks").inner_text()  # it has left the stage
    page.click("#transcript-open")
    page.locator("#transcript-track").select_option(label="full sentence")
    expect(page.locator("#transcript-lines")).to_contain_text("Ein Mann schläft")
