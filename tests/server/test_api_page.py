"""docs/api.md is executed: its clients run, and its tables name what there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import httpx
from playwright.sync_api import Browser

from stacl.decoding.options import Decoding
from stacl.server import endpoints, protocol, security
from stacl.server.limits import Limits
from tests.conftest import ROOT
from tests.helpers import GERMAN
from tests.server.client import Client
from tests.server.conftest import Running

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


def said(server: Running, text: str) -> str:
    """What both clients show: a line for each sentence."""
    translator = server.models["de-en"]
    session = translator.stream("wait-k:3", segment=True)
    session.feed(f"{text} ")
    session.close()
    return "".join(translator.target_language.join(trace.target) + "\n" for trace in session.traces)


def test_the_python_client(server: Running) -> None:
    code = block("python")
    assert len([line for line in code.splitlines() if line.strip()]) == 16
    code = code.replace("127.0.0.1:8765", f"127.0.0.1:{server.port}").replace("pace=0.4", "pace=0.0")
    for text in ("Ein Mann schläft auf dem grünen Sofa.", ""):
        own = code.replace("Ein Mann schläft auf dem grünen Sofa.", text)
        done = subprocess.run([sys.executable, "-c", own], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert done.stdout == (said(server, text) if text else "")


def test_the_javascript_client(server: Running, browser: Browser) -> None:
    code = block("js")
    assert len(code.splitlines()) == 16
    page = browser.new_page()
    page.goto(f"{server.url}/health")  # any page of the server: its rules apply to the script
    shown = page.evaluate(
        f"async ([text, url]) => {{ {code}; let shown = ''; await interpret(text, (part) => (shown += part), url);"
        "return shown; }",
        [GERMAN[1], server.live],
    )
    assert shown == said(server, GERMAN[1])
    page.close()


def test_the_curl_example(server: Running) -> None:
    body = re.search(r"-d '(\{.*?\})'", PAGE)
    assert body
    found = httpx.post(f"{server.url}/translate", json=json.loads(body[1]))
    assert found.status_code == 200
    said = server.models["de-en"].translate("Ein Mann schläft.", "wait-k:3", decoding=Decoding(beam=5, ahead=2))
    assert found.json()["translation"] == said


def test_every_message_of_the_client_is_as_the_page_says(server: Running) -> None:
    """The messages of the first table, sent as they stand there."""
    rows = [json.loads(row) for row in re.findall(r'^\| `(\{"type".*?\})` \|', PAGE.split("### Server")[0], re.M)]
    assert [row["type"] for row in rows] == ["start", "text", "policy", "end", "close", "resume"]
    with Client(server.live, begin=False) as client:
        for row in rows[:-1]:
            client.raw(json.dumps(row))
        client.facts = client.answer()
        client.until("closed")
        assert not client.errors
        assert [event["type"] for event in client.events][:3] == ["heard", "heard", "policy"]


def test_every_code_is_told() -> None:
    codes = set(re.findall(r"^\| `([a-z-]+)` \|", PAGE, re.M))
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "stacl" / "server").glob("*.py"))
    used = set(re.findall(r'(?:Refusal|answer)\(\s*"([a-z-]+)"', source))
    http_only = {*security.STATUS, "bad-request", "gone"} - {"shutdown", "too-large", "internal", "unknown-model"}
    assert used - http_only == codes
    closing = dict(re.findall(r"^\| `([a-z-]+)` \|.*\| (\d{4}) \|$", PAGE, re.M))
    assert len(closing) >= 10
    for code, number in closing.items():
        assert protocol.Refusal(code, "").close_code == int(number)
    for code, status in security.STATUS.items():
        assert re.search(rf"`{code}`[^(]*\({status}\)", PAGE), code


def test_every_limit_of_a_client_is_told() -> None:
    limits = Limits()
    for name, value in limits.for_clients().items():
        assert re.search(rf"`{name}`[^`]*?{value:,g}", PAGE), name
    for number in (limits.kept_events, limits.request_bytes, limits.stall_seconds, limits.requests):
        assert f"{number:,g}" in PAGE
    for name in ("align_seconds", "request_seconds", "sessions"):
        assert f"`{name}` ({getattr(limits, name):g})" in PAGE
    widest, farthest = endpoints._WIDEST_BEAM, endpoints._FARTHEST_AHEAD
    dearest = limits.request_bytes // (widest * (1 + farthest))
    assert f"{limits.request_bytes // 5:,} with a beam of 5, {dearest:,} with {widest} and {farthest}" in PAGE
