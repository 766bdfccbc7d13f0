"""The page, in a real browser, with a real server behind it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

from stacl.api import Translator
from stacl.server.pages import FOLDER
from stacl.server.settings import Settings
from stacl.text import END
from tests.browser import requires_browser
from tests.conftest import stacl
from tests.helpers import random_translator
from tests.server.conftest import Running, serving

pytestmark = requires_browser

SENTENCE = "Ein Mann schläft hier."
POLICIES = ["wait-k:4", "wait-k:1", "wait-k:3", "wait-k:5", "wait-k:9", "full"]  # of the rows, from the top
HTML = "<img src=x onerror=document.title='run'><script>document.title='run'</script>"


class Parrot:
    """An engine that repeats what it hears, so that everybody knows what must be on the page."""

    def __init__(self, vocabulary: int) -> None:
        self._vocabulary = vocabulary

    def start(self, size: int = 1) -> tuple[np.ndarray, int]:
        return np.zeros((size, 0), dtype=np.int64), 0

    def read(self, state: tuple[np.ndarray, int], pieces: np.ndarray) -> tuple[np.ndarray, int]:
        return np.concatenate((state[0], pieces), axis=1), state[1]

    def write(self, state, previous, visible=None):
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
        name: Translator(draft.settings, Parrot(len(draft.target_pieces)), draft.source_pieces, draft.target_pieces)
        for name, draft in drafts.items()
    }


@pytest.fixture(scope="module")
def server(models) -> Iterator[Running]:
    with serving(models) as running:
        yield running


@pytest.fixture(scope="module", autouse=True)
def patience():
    expect.set_options(timeout=20_000)


class Visitor:
    """Opens the page, and keeps what goes wrong in it."""

    def __init__(self, browser, url: str) -> None:
        self._browser, self._url = browser, url
        self._contexts: list[Any] = []
        self.problems: list[str] = []
        # A tab that is there already loads the page twice as fast as a new one.
        self._tab = self._watched(browser.new_context(reduced_motion="reduce").new_page())

    def __call__(self, query: str = "", url: str = "", prepare: Callable[[Any], None] | None = None, **options: Any):
        page = self._tab
        if url or prepare or options:
            self._contexts.append(self._browser.new_context(reduced_motion="reduce", **options))
            page = self._watched(self._contexts[-1].new_page())
        if prepare:
            prepare(page)
        page.goto(f"{url or self._url}/{query}")
        return page

    def beside(self, page, query: str):
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

    def _watched(self, page):
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda message: message.type == "error" and self.problems.append(message.text))
        return page


@pytest.fixture(scope="module")
def visitor(browser, server) -> Visitor:
    return Visitor(browser, server.url)


@pytest.fixture
def visit(visitor) -> Iterator[Visitor]:
    """Open the page; at the end of the test nothing may have gone wrong in it."""
    visitor.problems.clear()
    yield visitor
    visitor.leave()
    assert not visitor.problems


def connected(page) -> Any:
    expect(page.locator("#connection-text")).to_have_text("Connected")
    return page


def eventually(page, condition: Callable[[], bool]) -> None:
    """Until something is so that the page itself does not show."""
    for _ in range(1000):
        if condition():
            return
        page.wait_for_timeout(20)
    raise AssertionError("it did not happen")


def enter(page, text: str) -> None:
    """Type, but in one go."""
    field = page.locator("#type")
    field.fill(field.input_value() + text)


def words(page, selector: str) -> list[str]:
    """The words on show, without what only screen readers are told."""
    return page.locator(f"{selector} .word").evaluate_all("found => found.map(word => word.firstChild.textContent)")


def heard(page) -> list[str]:
    return words(page, "#heard .now")


def wait_for_words(page, selector: str, count: int) -> None:
    expect(page.locator(f"{selector} .word")).to_have_count(count)


def wait_until_said(page, sentences: int = 1) -> None:
    """Until so many sentences on the stage are complete on all tracks."""
    expect(page.locator(".lane .said")).to_have_count(len(POLICIES) * sentences)


def said(page) -> list[str]:
    """The present sentence of every track."""
    lanes = page.locator(".lane p:last-child")
    return [" ".join(words(page, f".lane >> nth={i} >> p:last-child")) for i in range(lanes.count())]


def test_a_typed_sentence_is_heard_and_said(visit, server):
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


def test_several_k_side_by_side(visit, server):
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


def test_the_slider_works_mid_sentence(visit):
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


class Cable:
    """Between the page and the server; it can be pulled."""

    def __init__(self, page) -> None:
        self._plugged, self._ends = True, ()
        page.route_web_socket("**/live", self._connect)

    def _connect(self, socket) -> None:
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


def test_after_a_drop_nothing_is_lost_or_repeated(visit, server):
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


def test_a_session_that_was_lost_is_replaced(visit, models):
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
        expect(page.locator("#alerts")).to_contain_text("no such session")
        wait_until_said(page)
        assert heard(page) == ["Eine", "Frau", "lacht."]
        page.context.close()


def test_a_silent_session_falls_asleep_and_wakes(visit, models):
    with serving(models, idle_seconds=0.5) as server:
        page = visit(url=server.url)
        expect(page.locator("#connection-text")).to_have_text("Asleep until you speak")
        assert not page.locator("#alerts").inner_text()
        enter(page, "Ein Mann\n")
        wait_for_words(page, "#heard .now", 2)
        page.context.close()


def test_html_stays_text(visit):
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


def test_an_error_is_shown_until_it_is_dismissed(visit, server):
    def answering(socket) -> None:
        def answer(text: str | bytes) -> None:
            asked = json.loads(text)
            facts = {"session": "s", "model": "de-en", "source": "de", "target": "en", "policies": POLICIES}
            mistake = {"type": "error", "code": "bad-message", "message": "expected <b>other</b> text", "fatal": False}
            socket.send(json.dumps({"type": "started", **facts} if asked["type"] == "start" else mistake))

        socket.on_message(answer)

    page = connected(visit(prepare=lambda page: page.route_web_socket("**/live", answering)))
    enter(page, "Ein ")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("expected <b>other</b> text")
    alert.get_by_role("button", name="Dismiss").click()
    assert not alert.inner_text()


def test_a_refused_start_is_explained(visit, models):
    with serving(models, tracks=2) as server:
        page = visit(url=server.url)
        expect(page.get_by_role("alert")).to_contain_text("policies must be 1 to 2, not 6")
        expect(page.locator("#connection-text")).to_have_text("Not connected. Try again")
        page.context.close()


def test_the_token_is_used_and_leaves_the_address(visit, models):
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


def test_chinese_needs_no_spaces(visit, server):
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


def test_the_direction_can_be_switched(visit):
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


def test_an_example_is_played_at_a_pace(visit, server):
    page = connected(visit("?pace=2400&example=The green sofa"))
    text = "Ein Mann schläft auf einem grünen Sofa."
    assert page.locator(".upcoming").inner_text() == text  # an empty page shows what will be played
    page.get_by_role("button", name="Play the text").click()
    wait_until_said(page)
    assert heard(page) == text.split()
    assert said(page) == [text] * len(POLICIES)
    expect(page.locator("body")).to_have_attribute("data-player", "done")
    page.click("#restart")
    wait_until_said(page, sentences=2)
    assert heard(page) == text.split()
    assert words(page, "#heard .past") == text.split()


def test_playing_pauses_and_goes_on(visit):
    page = connected(visit("?pace=20&example=A short speech"))
    page.click("#play")
    wait_for_words(page, "#heard .now", 1)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("body")).to_have_attribute("data-player", "paused")
    assert page.locator(".upcoming").inner_text().endswith("Damen und Herren.")
    page.get_by_role("slider", name="Pace").fill("400")
    page.click("#play")
    expect(page.locator("#heard .past .word").first).to_be_visible()  # the next sentence has begun


def test_a_text_of_ones_own_is_played(visit):
    page = connected(visit("?pace=2400"))
    page.locator("#example").select_option("2")
    chosen = page.locator(".upcoming").inner_text()
    page.locator("#example").select_option("own")
    page.get_by_role("button", name="Cancel").click()
    assert page.locator("#example").input_value() == "2"
    assert page.locator(".upcoming").inner_text() == chosen
    page.locator("#example").select_option("own")
    page.get_by_role("textbox", name="A text to play").fill("Eins zwei.\nDrei vier.")
    page.get_by_role("button", name="Use this text").click()
    page.click("#play")
    wait_until_said(page, sentences=2)
    assert heard(page) == ["Drei", "vier."]


RECOGNISER = """
delete window.SpeechRecognition;
window.webkitSpeechRecognition = class {
  start() { window.recogniser = this; }
  stop() { this.onend?.(); }
};
window.recognise = (text, isFinal) => {
  const result = Object.assign([{ transcript: text }], { isFinal });
  window.recogniser.onresult({ resultIndex: 0, results: [result] });
};
"""


def test_speech_is_sent_once_it_is_settled(visit):
    page = connected(visit(prepare=lambda page: page.add_init_script(RECOGNISER)))
    page.get_by_role("button", name="Speak", exact=True).click()
    assert page.evaluate("recogniser.lang") == "de-DE"
    for guess in ("Ein", "Ein Mann", "Ein Mann schlief", "Ein Mann schläft ihr"):
        page.evaluate("guess => recognise(guess, false)", guess)
    wait_for_words(page, "#heard .now", 1)  # the others may still change
    page.evaluate("guess => recognise(guess, true)", SENTENCE.rstrip("."))
    wait_until_said(page)
    assert heard(page) == SENTENCE.rstrip(".").split()
    page.evaluate("recogniser.onerror({ error: 'not-allowed' })")
    expect(page.get_by_role("alert")).to_contain_text("not allowed to use the microphone")
    expect(page.get_by_role("button", name="Speak", exact=True)).to_have_attribute("aria-pressed", "false")


def test_the_staircase_is_drawn_and_told(visit):
    page = connected(visit("?k=1"))
    enter(page, "Ein Mann ")
    wait_for_words(page, "#own", 2)
    told = page.locator("#stairs-text")
    first, second = words(page, "#own")
    expect(told).to_have_text(f"wait 1, 2 words heard: after 1 “{first}”, after 2 “{second}”.")
    steps = page.locator(".track-path.chosen .stairs").get_attribute("d")
    assert len(re.findall("V", steps)) == 2
    page.get_by_role("button", name="wait 3: show its staircase").click()
    expect(told).to_have_text("wait 3, 2 words heard: nothing said yet.")
    assert page.locator(".target-label").count() == 0
    assert page.locator(".source-label").all_text_contents() == ["Ein", "Mann"]


def scripted(*messages: dict[str, Any], sent: list[dict[str, Any]] | None = None) -> Callable[[Any], None]:
    """A server that says these messages to whoever starts a session, and keeps what it is sent."""

    def answer(socket) -> None:
        def begin(text: str | bytes) -> None:
            asked = json.loads(text)
            if sent is not None:
                sent.append(asked)
            if asked["type"] != "start":
                return
            facts = {"session": "s", "model": "de-en", "source": "de", "target": "en", "policies": POLICIES}
            socket.send(json.dumps({"type": "started"} | facts))
            for n, message in enumerate(messages, 1):
                socket.send(json.dumps({"n": n} | message))

        socket.on_message(begin)

    return lambda page: page.route_web_socket("**/live", answer)


def test_anticipated_words_are_marked(visit):
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
    assert marked.get_attribute("title") == "Anticipated: said after 2 source words; “gelacht.” came as number 3."
    assert page.locator(".dot").count() == 2
    assert page.locator(".dot.ahead").count() == 1


def test_messages_that_come_twice_or_with_a_hole_do_no_harm(visit):
    heard = {"type": "heard", "segment": 0, "gap": " "}
    first, second = heard | {"index": 1, "text": "Ein"}, heard | {"index": 2, "text": "Mann"}
    sent: list[dict[str, Any]] = []
    page = visit(prepare=scripted(first, first | {"n": 1}, second | {"n": 2}, heard | {"n": 4}, sent=sent))
    eventually(page, lambda: sent[-1:] == [{"type": "resume", "session": "s", "received": 2}])
    assert words(page, "#heard .now") == ["Ein", "Mann"]


def test_captions_mirror_a_page(visit):
    page = connected(visit())
    enter(page, "Ein Mann schläft ")
    wait_for_words(page, ".track[data-tone='1']", 3)
    captions = visit.beside(page, "?view=captions&track=wait-k:1&size=40&lines=3")  # opened in the middle
    wait_for_words(captions, "#captions-text", 3)
    enter(page, "hier.\n")
    wait_until_said(page)
    enter(page, "Ja.\n")
    wait_for_words(page, "#heard .past", 4)
    wait_until_said(page, sentences=2)
    everything = words(page, ".track[data-tone='1']")
    wait_for_words(captions, "#captions-text", len(everything))
    assert words(captions, "#captions-text") == everything
    assert captions.locator("main, .bar").locator("visible=true").count() == 0
    style = "found => [getComputedStyle(found).backgroundColor, getComputedStyle(document.body).backgroundColor]"
    assert captions.locator("#captions-view").evaluate(style) == ["rgba(0, 0, 0, 0)"] * 2  # for an overlay
    assert captions.locator(".captions-window").evaluate("found => getComputedStyle(found).fontSize") == "40px"


def test_captions_with_a_session_of_their_own(visit, server):
    captions = visit("?view=captions&source=type&model=de-en&policy=wait-k:2")
    field = captions.get_by_label("Text to translate")
    expect(field).to_be_focused()
    field.press_sequentially("Ein Mann schläft\n")
    wait_for_words(captions, "#captions-text", 3)
    assert words(captions, "#captions-text") == ["Ein", "Mann", "schläft"]


def test_the_transcript_is_downloaded(visit, server, tmp_path):
    page = connected(visit())
    for line in (SENTENCE, "Eine Frau < & > lacht."):
        enter(page, f"{line}\n")
        wait_for_words(page, "#heard .now", len(line.split()))
    wait_until_said(page, sentences=2)
    page.click("#transcript-open")
    found = {}
    for kind in ("txt", "srt", "vtt", "jsonl"):
        with page.expect_download() as download:
            page.click(f"[data-file={kind}]")
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        found[kind] = path
        assert path.suffix == f".{kind}"
    text = found["txt"].read_text("utf-8")
    assert text.startswith(f"de: {SENTENCE}\nwait-k:4: {SENTENCE}\nwait-k:1: ")
    assert subtitles(found["srt"], ",") == [SENTENCE, "Eine Frau < & > lacht."]
    assert subtitles(found["vtt"], ".") == [SENTENCE, "Eine Frau &lt; &amp; &gt; lacht."]
    done = stacl("score", found["jsonl"])
    assert done.returncode == 0, done.stderr
    assert f"{2 * len(POLICIES)} sentences" in done.stdout
    first = json.loads(found["jsonl"].read_text("utf-8").splitlines()[0])
    assert first["source"] == SENTENCE.split()
    assert first["target"] == SENTENCE.split()
    assert first["delays"] == [4, 4, 4, 4]


def subtitles(path: Path, point: str) -> list[str]:
    """The texts of the cues, which follow each other in time."""
    clock = rf"\d\d:\d\d:\d\d{re.escape(point)}\d\d\d"
    cues = re.findall(rf"^({clock}) --> ({clock})\n(.+?)\n(?:\n|\Z)", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    times = [time for begin, end, _ in cues for time in (begin, end)]
    assert times == sorted(times)
    return [text.replace("\n", " ") for _, _, text in cues]


def test_a_long_paste_goes_in_pieces(visit):
    sent: list[dict[str, Any]] = []
    page = connected(visit(prepare=scripted(sent=sent)))
    enter(page, "Ein Mann. " * 1200 + "💡" * 8)
    eventually(page, lambda: len(sent) == 3)
    assert "".join(message.get("text", "") for message in sent) == "Ein Mann. " * 1200
    assert [message.get("seq") for message in sent] == [None, 1, 2]
    cut = "import('/typing.js').then(found => found.pieces('a' + '💡'.repeat(9000)).map(piece => piece.length))"
    assert page.evaluate(cut) == [7999, 8000, 2002]


def test_what_was_chosen_is_remembered(visit):
    page = connected(visit(color_scheme="dark"))
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    dark = page.evaluate(ground)
    page.get_by_role("button", name="Dark or light").click()
    light = page.evaluate(ground)
    assert dark != light
    row, box = page.locator(".track[data-tone='9']"), page.locator(".chip[data-tone='9'] input")
    assert row.is_visible()
    box.uncheck(force=True)
    assert row.is_hidden()
    page.get_by_label("How long your track waits").fill("6")
    connected(page).reload()
    assert page.evaluate(ground) == light
    connected(page)
    assert row.is_hidden()
    assert not box.is_checked()
    assert page.locator("#latency-text").inner_text() == "6 words"


POOR = """
for (const name of ["localStorage", "sessionStorage"])
  Object.defineProperty(window, name, { get() { throw new DOMException("no", "SecurityError") } });
delete window.SpeechRecognition;
delete window.webkitSpeechRecognition;
delete window.BroadcastChannel;
"""


def test_a_browser_without_storage_or_speech_will_do(visit):
    page = connected(visit(prepare=lambda page: page.add_init_script(POOR)))
    page.get_by_role("button", name="Dark or light").click()
    enter(page, "Ein ")
    wait_for_words(page, "#heard .now", 1)
    button = page.get_by_role("button", name="Speak", exact=True)
    assert button.is_disabled()
    assert "no speech recognition" in button.get_attribute("title")


def test_it_fits_the_screen(visit):
    page = connected(visit("?pace=2400", viewport={"width": 390, "height": 844}))
    page.click("#play")
    wait_until_said(page)
    size = "() => [document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
    assert page.evaluate(size)[0] == 390  # a phone scrolls down, never sideways
    for width, height in ((1280, 720), (1440, 900), (1920, 1080)):
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate(size) == [width, height]  # a screen on a wall does not scroll at all


def test_everything_has_a_name_and_can_be_reached(visit):
    page = connected(visit())
    unnamed = """found => found.filter(one => !one.closest('dialog, [hidden]')
      && !(one.labels?.length || one.getAttribute('aria-label') || one.textContent.trim())).map(one => one.outerHTML)"""
    assert page.locator("button, select, input, textarea, a").evaluate_all(unnamed) == []
    reached = []
    for _ in range(24):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
    order = ["model", "theme", "play", "type", "example", "pace", "speak", "latency"]
    assert [name for name in dict.fromkeys(reached) if name in order] == order


def test_the_page_is_plain_text_and_its_own():
    files = {path.name: path.read_text("utf-8") for path in FOLDER.iterdir()}
    assert {"index.html", "main.js", "style.css"} <= files.keys()
    for name, text in files.items():
        assert len(text.splitlines()) < 300, name
        assert not re.search(r"(inner|outer|Adjacent)HTML|document\.write|\beval\(|new Function", text), name
        foreign = set(re.findall(r"https?://[^\s\"'<>`]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not foreign, name
    page = files["index.html"]
    assert not re.search(r"\sstyle=|\son\w+=|<style", page)
    assert not re.search(r"<script(?![^>]*\ssrc=)", page)
    for name in re.findall(r'(?:href|src)="([\w.-]+)"', page):
        assert name in files
