"""Playing, captions, transcripts; and that the page suits everybody."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.sync_api import expect

from stacl.server.pages import FOLDER
from tests.conftest import stacl
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


def test_an_example_is_played_at_a_pace(visit: Visitor, server: Running) -> None:
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


def test_playing_pauses_and_goes_on(visit: Visitor) -> None:
    page = connected(visit("?pace=20&example=A short speech"))
    page.click("#play")
    wait_for_words(page, "#heard .now", 1)
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("body")).to_have_attribute("data-player", "paused")
    assert page.locator(".upcoming").inner_text().endswith("Damen und Herren.")
    page.get_by_role("slider", name="Pace").fill("400")
    page.click("#play")
    expect(page.locator("#heard .past .word").first).to_be_visible()  # the next sentence has begun


def test_a_text_of_ones_own_is_played(visit: Visitor) -> None:
    page = connected(visit("?pace=2400"))
    page.locator("#example").select_option("2")
    chosen = page.locator(".upcoming").inner_text()
    page.locator("#example").select_option("own")
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#example")).to_have_value("2")  # the dialog says that it was closed only a moment later
    assert page.locator(".upcoming").inner_text() == chosen
    page.locator("#example").select_option("own")
    page.get_by_role("textbox", name="A text to play").fill("Eins zwei.\nDrei vier.")
    page.get_by_role("button", name="Use this text").click()
    page.click("#play")
    wait_until_said(page, sentences=2)
    assert heard(page) == ["Drei", "vier."]
    page.locator("#example").select_option("own")  # another one
    expect(page.get_by_role("textbox", name="A text to play")).to_be_visible()


def test_captions_mirror_a_page(visit: Visitor) -> None:
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


POST = """() => {
  const channel = new BroadcastChannel(`stacl ${location.origin}`);
  const post = (kind, message) => channel.postMessage({ kind, page: "p", session: "s", message });
  post("started", { policies: ["full"], source: "de", target: "en" });
  for (let segment = 0; segment < 100; segment++) {
    const place = { segment, track: 0 };
    post("message", { n: 2 * segment + 1, type: "segment", ...place, write_times: Array(10_000).fill(0.5) });
    post("message", { n: 2 * segment + 2, type: "word", ...place, text: `w${segment}`, gap: " " });
  }
}"""


def test_captions_keep_no_more_than_they_show(visit: Visitor) -> None:
    captions = visit("?view=captions")
    expect(captions.locator("#captions-note")).to_be_visible()
    inspector = captions.context.new_cdp_session(captions)

    def megabytes() -> float:
        inspector.send("HeapProfiler.collectGarbage")
        return inspector.send("Runtime.getHeapUsage")["usedSize"] / 1e6

    before = megabytes()
    captions.evaluate(POST)
    expect(captions.locator("#captions-text")).to_contain_text("w99")
    assert words(captions, "#captions-text") == ["w96", "w97", "w98", "w99"]
    assert megabytes() - before < 2  # of the 8 that came


def test_captions_with_a_session_of_their_own(visit: Visitor, server: Running) -> None:
    captions = visit("?view=captions&source=type&model=de-en&policy=wait-k:2")
    field = captions.get_by_label("Text to translate")
    expect(field).to_be_focused()
    field.press_sequentially("Ein Mann schläft\n")
    wait_for_words(captions, "#captions-text", 3)
    assert words(captions, "#captions-text") == ["Ein", "Mann", "schläft"]


def test_captions_that_are_refused_say_why(visit: Visitor) -> None:
    captions = visit("?view=captions&source=type&policy=bogus")
    expect(captions.locator("#captions-note")).to_contain_text("no policy is called 'bogus'")


def test_captions_of_a_model_that_is_not_there(visit: Visitor) -> None:
    captions = visit("?view=captions&source=type&model=zh-ne")
    expect(captions.locator("#captions-note")).to_have_text("Unknown model zh-ne. Known: de-en, zh-en.")


def test_the_transcript_is_downloaded(visit: Visitor, server: Running, tmp_path: Path) -> None:
    page = connected(visit())
    for line in (SENTENCE, "Eine Frau < & > lacht."):
        enter(page, f"{line}\n")
        wait_for_words(page, "#heard .now", len(line.split()))
    wait_until_said(page, sentences=2)
    page.click("#transcript-open")
    page.locator("#transcript-track").select_option(label="wait 1")
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
    traces = [json.loads(line) for line in found["jsonl"].read_text("utf-8").splitlines()]
    assert [trace["policy"] for trace in traces] == ["wait-k:1"] * 2  # a mean over several tracks would be of nothing
    first = traces[0]
    assert first["source"] == SENTENCE.split()
    assert first["target"] == SENTENCE.split()
    assert first["delays"] == [1, 2, 3, 4]


SUBTITLES_OF = """async (words) => {
  const { asSrt } = await import("/transcript.js");
  const said = words.map((text) => ({ text, gap: /^[ -~]/.test(text) ? " " : "", seconds: 0 }));
  return asSrt([{ began: 0, tracks: [{ words: said }] }], 0);
}"""


def test_chinese_subtitles_have_two_lines_of_whole_words_and_time_to_be_read(visit: Visitor) -> None:
    words = ["我", "买", "了", "一部", "iPhone", "7", "，", "在", "纽约", "的", "一家", "商店", "里", "买", "的", "，"]
    words += ["价格", "是", "三百", "美元", "，", "我", "觉得", "Microsoft", "很", "贵", "。"]
    number, times, *lines = connected(visit()).evaluate(SUBTITLES_OF, words).splitlines()
    assert (number, times) == ("1", "00:00:00,000 --> 00:00:04,150")
    assert lines == ["我买了一部 iPhone 7，在纽约的一家商店里买", "的，价格是三百美元，我觉得 Microsoft很贵。"]


def test_what_was_typed_wide_is_found_again_when_it_is_heard_narrow(visit: Visitor) -> None:
    typed = """import("/typing.js").then(({ Pending }) => {
      const pending = new Pending();
      pending.sent("２０１９年增长３．５％");
      pending.heard("2019");
      return pending.text;
    })"""
    assert connected(visit()).evaluate(typed) == "年增长3.5%"


def subtitles(path: Path, point: str) -> list[str]:
    """The texts of the cues, which follow each other in time."""
    clock = rf"\d\d:\d\d:\d\d{re.escape(point)}\d\d\d"
    cues = re.findall(rf"^({clock}) --> ({clock})\n(.+?)\n(?:\n|\Z)", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    times = [time for begin, end, _ in cues for time in (begin, end)]
    assert times == sorted(times)
    return [text.replace("\n", " ") for _, _, text in cues]


def test_what_was_chosen_is_remembered(visit: Visitor) -> None:
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


def test_a_browser_without_storage_or_speech_will_do(visit: Visitor) -> None:
    page = connected(visit(prepare=lambda page: page.add_init_script(POOR)))
    page.get_by_role("button", name="Dark or light").click()
    enter(page, "Ein ")
    wait_for_words(page, "#heard .now", 1)
    button = page.get_by_role("button", name="Speak", exact=True)
    assert button.is_disabled()
    assert "no speech recognition" in button.get_attribute("title")


def test_everything_has_a_name_and_can_be_reached(visit: Visitor) -> None:
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


def test_the_page_is_plain_text_and_its_own() -> None:
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
