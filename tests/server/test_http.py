"""The plain endpoints and the page's files: right answers, right types, clear refusals."""

from __future__ import annotations

import contextlib
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import stacl
from stacl.decoding.options import Decoding
from stacl.live.translator import Translator
from stacl.server.endpoints import TranslateRequest
from stacl.server.metrics import Metrics
from stacl.server.pages import FOLDER, load_files
from stacl.server.protocol import Refusal
from tests.helpers import GERMAN
from tests.server.client import Client, alone
from tests.server.conftest import Running, serving

JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def http(server: Running) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def test_models(http: httpx.Client) -> None:
    found = http.get("/models").json()
    assert found["models"][0] == {"name": "de-en", "source": "de", "target": "en", "policy": "wait-k:2"}
    assert [model["name"] for model in found["models"]] == ["de-en", "zh-en"]
    assert "wait-k" in found["policies"]
    assert found["version"] == stacl.__version__


def test_health(http: httpx.Client) -> None:
    assert http.get("/health").json() == {"status": "ok"}
    assert http.head("/health").status_code == 200


@pytest.mark.parametrize(("beam", "ahead"), [(1, 0), (3, 0), (3, 2)])
@pytest.mark.parametrize("segment", [True, False])
def test_translate(http: httpx.Client, server: Running, beam: int, ahead: int, segment: bool) -> None:
    text = f"{GERMAN[0]} {GERMAN[1]}\n\n{GERMAN[2]}\n"
    asked = {"text": text, "policy": "wait-k:3", "beam": beam, "ahead": ahead, "segment": segment, "model": "de-en"}
    found = http.post("/translate", json=asked).json()
    assert found.keys() == {"model", "policy", "beam", "translation", "segments"}
    assert (found["model"], found["policy"]) == ("de-en", "wait-k:3")
    session = server.models["de-en"].stream("wait-k:3", segment=segment, decoding=Decoding(beam=beam, ahead=ahead))
    lines = [" ".join(word.text for word in session.feed(f"{line}\n")) for line in text.split("\n")]
    assert found["translation"] == "\n".join(lines)
    assert [part["source"] for part in found["segments"]] == [list(trace.source) for trace in session.traces]
    assert [part["target"] for part in found["segments"]] == [list(trace.target) for trace in session.traces]
    assert [part["delays"] for part in found["segments"]] == [list(trace.delays) for trace in session.traces]
    assert found["segments"][0]["latency"]["AL"] == pytest.approx(stacl.latency(session.traces[0])["AL"], abs=1e-3)
    assert not [name for name in found["segments"][0]["latency"] if name.endswith("_CA")]


def test_translate_takes_defaults(http: httpx.Client, server: Running) -> None:
    found = http.post("/translate", json={"text": GERMAN[0]}).json()
    assert (found["model"], found["policy"]) == ("de-en", "full")
    assert found["beam"] == 5
    assert found["translation"] == server.models["de-en"].translate(GERMAN[0])
    assert http.post("/translate", json={"text": ""}).json() == {
        "model": "de-en",
        "policy": "full",
        "beam": 5,
        "translation": "",
        "segments": [],
    }


@pytest.mark.parametrize(
    ("body", "status", "code", "message"),
    [
        (b"{", 400, "bad-request", "not valid JSON"),
        (b"[1]", 400, "bad-request", "not a list"),
        (b"[" * 50_000, 400, "bad-request", "not valid JSON"),
        (b"{}", 400, "bad-request", "missing required field text"),
        (b'{"text": 5}', 400, "bad-request", "text: expected str, got int"),
        (b'{"text": "a", "polcy": "full"}', 400, "bad-request", "no field 'polcy'; did you mean policy?"),
        (b'{"text": "a", "policy": "wait-q"}', 400, "bad-policy", "did you mean wait-k?"),
        (b'{"text": "a", "policy": "/etc/passwd.py:g"}', 400, "bad-policy", "no policy is called"),
        (b'{"text": "a", "policy": "wait-k:1,c=1.e-999999999"}', 400, "bad-policy", "c must be a number"),
        (b'{"text": "a", "policy": "wait-k:3,c=1,c=\\ud800"}', 400, "bad-policy", "\\ud800"),
        (b'{"text": "a", "\\ud800": 1}', 400, "bad-request", "\\ud800"),
        (b'{"text": "a", "beam": 99}', 400, "bad-request", "beam: expected int <= 8"),
        (b'{"text": "a", "beam": 2, "ahead": 99}', 400, "bad-request", "ahead: expected int <= 8"),
        (b'{"text": "a", "beam": true}', 400, "bad-request", "beam: expected int"),
        (b'{"text": "a", "segment": 1}', 400, "bad-request", "segment: expected bool"),
        (b'{"text": "a", "model": "xx-en"}', 404, "unknown-model", "unknown model 'xx-en'"),
        (b'{"text": "' + b"a" * 110_000 + b'"}', 413, "too-large", "at most 102400 bytes"),
        (
            b'{"text": "' + b"a " * 800 + b'", "beam": 8, "ahead": 8}',
            413,
            "too-large",
            "with beam 8 and ahead 8 a text has at most 1422 bytes",
        ),
    ],
)
def test_translate_refuses(http: httpx.Client, body: bytes, status: int, code: str, message: str) -> None:
    answer = http.post("/translate", content=body, headers=JSON)
    assert answer.status_code == status
    assert answer.json()["code"] == code
    assert message in answer.json()["message"]
    assert "\n" not in answer.json()["message"]


def test_wrong_ways_to_ask(http: httpx.Client) -> None:
    refused = {
        "not-found": (http.get("/nothing"), 404),
        "bad-method": (http.get("/translate"), 405),
        "bad-type": (http.post("/translate", content="text=a"), 415),
        "upgrade-required": (http.get("/live"), 426),
    }
    for code, (answer, status) in refused.items():
        assert answer.status_code == status
        assert answer.json()["code"] == code
        assert answer.json()["message"]
    assert refused["bad-method"][0].headers["Allow"] == "POST"
    assert http.post("/models").status_code == 405
    assert http.post("/index.html").status_code == 405


def test_too_many_requests_at_once(models: dict[str, Translator]) -> None:
    with serving(models, requests=1) as running, httpx.Client(base_url=running.url, timeout=60) as http:
        long = {"text": "\n".join(GERMAN * 100), "policy": "full"}

        def ask() -> None:
            with contextlib.suppress(httpx.ReadTimeout):
                httpx.post(f"{running.url}/translate", json=long, timeout=2)

        thread = threading.Thread(target=ask)
        thread.start()
        while not running.hub.requests:
            time.sleep(0.005)
        answer = http.post("/translate", json={"text": "a"})
        assert (answer.status_code, answer.json()["code"]) == (429, "busy")
        assert answer.headers["Retry-After"] == "1"
        # Words are said all the same.
        with Client(running.live) as client:
            client.text("Ein Mann ")
            assert client.until("word")["waited"] < 5
        thread.join()


def test_a_text_that_takes_too_long_is_given_up(models: dict[str, Translator]) -> None:
    with serving(models, request_seconds=0.3) as running:
        answer = httpx.post(f"{running.url}/translate", json={"text": "\n".join(GERMAN * 250)}, timeout=60)
        assert (answer.status_code, answer.json()["code"]) == (503, "too-long")
        assert answer.json()["message"] == "the text was not translated within 0.3 seconds; send it in parts"
        deadline = time.monotonic() + 20
        while running.hub.requests or running.hub.texts.busy:
            assert time.monotonic() < deadline, "what was given up is still worked at"
            time.sleep(0.02)


def test_who_goes_away_stops_the_work(models: dict[str, Translator]) -> None:
    with serving(models) as running:
        long = {"text": "\n".join(GERMAN * 280), "policy": "full"}
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{running.url}/translate", json=long, timeout=httpx.Timeout(30, read=0.3))
        deadline = time.monotonic() + 20
        while running.hub.requests or running.hub.texts.busy:
            assert time.monotonic() < deadline, "somebody who left is still worked for"
            time.sleep(0.02)


def test_metrics(models: dict[str, Translator]) -> None:
    with serving(models) as running:
        with Client(running.live) as client:
            client.text(GERMAN[0])
            client.raw("nonsense")
            client.finish()
        with Client(running.live) as client:
            client.drop()
            client.resume()
        text = httpx.get(f"{running.url}/metrics").text
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    values = {name: float(value) for name, value in lines}
    assert not [name for name in values if "_created" in name]
    assert values["stacl_sessions_opened_total"] == 2
    assert values["stacl_sessions_resumed_total"] == 1
    assert values['stacl_refused_total{reason="bad-message"}'] == 1
    assert values['stacl_words_in_total{model="de-en"}'] == len(GERMAN[0].split())
    said = len(alone(models["de-en"], None, GERMAN[0])[0])
    assert values['stacl_words_out_total{model="de-en"}'] == said
    assert values["stacl_word_delay_seconds_count"] == said
    assert values['stacl_word_delay_seconds_bucket{le="+Inf"}'] == said
    assert values["stacl_word_delay_seconds_sum"] > 0
    assert values["process_resident_memory_bytes"] > 10_000_000
    assert {"stacl_sessions_open", "stacl_connections_open", "stacl_queue_length"} <= values.keys()
    named = re.findall(r"# TYPE (\S+) (\w+)", text)
    for name, kind in named:
        assert kind in ("counter", "gauge", "histogram")
        assert f"# HELP {name} " in text


def test_the_default_beam_gets_narrower_with_the_length_of_the_text() -> None:
    for size, beam in ((1, 5), (20_480, 5), (20_481, 4), (51_200, 2), (102_400, 1)):
        assert TranslateRequest("a" * size).decoding(102_400).beam == beam
    with pytest.raises(Refusal):
        TranslateRequest("a" * 20_481, beam=5).decoding(102_400)


def test_labels_are_escaped() -> None:
    metrics = Metrics(dict.fromkeys(("sessions_open", "connections_open", "queue_length"), lambda: 0.0))
    metrics.add("words_in", model='a"b\\c\nd')
    text = metrics.text()
    assert 'stacl_words_in_total{model="a\\"b\\\\c\\nd"} 1' in text


def test_the_page_and_its_files(http: httpx.Client) -> None:
    pages = {path: page for path, page in load_files().items() if path != "/"}
    assert {f"/{path.relative_to(FOLDER).as_posix()}" for path in FOLDER.rglob("*") if path.is_file()} == pages.keys()
    kinds = {".js": "text/javascript", ".html": "text/html", ".css": "text/css", ".svg": "image/svg+xml"}
    for path, page in pages.items():
        answer = http.get(path)
        assert answer.status_code == 200
        assert answer.content == page.content
        suffix = path[path.rfind(".") :]
        assert answer.headers["Content-Type"].removesuffix("; charset=utf-8") == kinds[suffix]
    assert http.get("/?token=x").content == http.get("/index.html").content


@pytest.mark.parametrize("path", ["/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "//etc/passwd", "/static/../app.py"])
def test_nothing_else_of_the_disk(server: Running, path: str) -> None:
    with httpx.Client(base_url=server.url) as http:
        request = http.build_request("GET", "/")
        request.url = request.url.copy_with(raw_path=path.encode())
        assert http.send(request).status_code == 404


def test_an_upgrade_is_seen_at_once(tmp_path: Path, http: httpx.Client) -> None:
    """A browser asks each time, and gets nothing anew only as long as the content is the same."""
    path = next(iter(load_files()))
    first = http.get(path)
    assert first.headers["Cache-Control"] == "no-cache"
    again = http.get(path, headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert http.get(path, headers={"If-None-Match": '"old"'}).status_code == 200
    (tmp_path / "index.html").write_text("one")
    before = load_files(tmp_path)["/"].tag
    (tmp_path / "index.html").write_text("two")
    assert load_files(tmp_path)["/"].tag != before


def test_answers_are_ascii_safe_json(http: httpx.Client) -> None:
    """A refusal may quote anything, half a character too."""
    answer = http.post("/translate", content=json.dumps({"text": "a", "model": "\ud83d"}).encode(), headers=JSON)
    assert answer.status_code == 404


def test_halves_of_characters_in_a_text(http: httpx.Client) -> None:
    answer = http.post("/translate", content=b'{"text": "Ein \\ud83d hier \\ude00"}', headers=JSON)
    assert answer.status_code == 200
    assert answer.json()["segments"][0]["source"] == ["Ein", "\ufffd", "hier", "\ufffd"]


def test_a_text_without_ends_is_cut(http: httpx.Client, server: Running) -> None:
    limit = server.hub.limits.sentence_words
    found = http.post("/translate", json={"text": "Hund " * (limit + 5), "segment": False}).json()
    assert [len(part["source"]) for part in found["segments"]] == [limit, 5]
    # Words of signs that nobody knows are a piece a byte: fewer of them make a sentence.
    odd = " ".join("🦀" * 200 for _ in range(20))
    found = http.post("/translate", json={"text": odd, "segment": False, "policy": "full"}).json()
    assert max(len("".join(part["source"]).encode()) for part in found["segments"]) <= 8 * limit + 1000
