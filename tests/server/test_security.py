"""Who is let in: this machine's own page and programs, the token where one is needed, and nobody else."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from stacl.live.translator import Translator
from stacl.server.settings import Settings
from tests.server.client import Client
from tests.server.conftest import Running, serving

TOKEN = "quite secret"


@pytest.fixture(scope="module")
def guarded(models: dict[str, Translator]) -> Iterator[Running]:
    """A server for others: with a token, under any name, for one foreign page."""
    with serving(
        models, Settings(token=TOKEN, hosts=None, origins=("https://Example.org:443/",), workers=1)
    ) as running:
        yield running


def knock(url: str, **headers: str) -> int:
    """The status with which a websocket is answered."""
    try:
        with connect(url, additional_headers=headers):
            return 101
    except InvalidStatus as refused:
        body = json.loads(refused.response.body)
        assert body["code"]
        assert body["message"]
        return refused.response.status_code


def test_pages_of_other_sites_are_refused(server: Running) -> None:
    own = f"http://127.0.0.1:{server.port}"
    assert knock(server.live, Origin=own) == 101
    assert knock(server.live) == 101  # a program, not a browser
    other_port = f"http://127.0.0.1:{server.port + 1}"
    for origin in (
        "https://evil.example",
        "null",
        other_port,
        f"{own}.evil.example",
        "file://",
        "http://[",
        f"ftp{own[4:]}",
    ):
        assert knock(server.live, Origin=origin) == 403, origin
        answer = httpx.post(f"{server.url}/translate", json={"text": "a"}, headers={"Origin": origin})
        assert answer.status_code == 403
        assert answer.json()["code"] == "foreign-origin"
        assert "Access-Control-Allow-Origin" not in answer.headers
    assert httpx.post(f"{server.url}/translate", json={"text": "a"}, headers={"Origin": own}).status_code == 200


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("https://example.org:443", "https://example.org"),
        ("http://EXAMPLE.org:80/", "http://example.org"),
        ("https://example.org:80", "https://example.org:80"),
        ("http://localhost:03000", "http://localhost:3000"),
        ("https://Bücher.example", "https://xn--bcher-kva.example"),
        ("https://straße.example:8443", "https://xn--strae-oqa.example:8443"),
        ("http://[0:0:0:0:0:0:0:1]:8080", "http://[::1]:8080"),
    ],
)
def test_an_origin_is_allowed_as_browsers_write_it(given: str, sent: str) -> None:
    assert Settings(origins=(given,)).origins == (sent,)


def test_other_names_of_this_machine_are_refused(server: Running) -> None:
    """A foreign name that leads here is how a foreign page gets around the rule of the same origin."""
    for host, status in [
        ("localhost", 200),
        (f"127.0.0.1:{server.port}", 200),
        ("[::1]:80", 200),
        ("LOCALHOST", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1:80@evil.example", 403),
        ("", 403),
    ]:
        assert httpx.get(f"{server.url}/models", headers={"Host": host}).status_code == status, host
    evil = {"Host": "evil.example", "Origin": "http://evil.example"}
    assert httpx.post(f"{server.url}/translate", json={"text": "a"}, headers=evil).status_code == 403
    raw = http.client.HTTPConnection("127.0.0.1", server.port)
    raw.putrequest("GET", "/live", skip_host=True)
    for name, value in {
        **evil,
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }.items():
        raw.putheader(name, value)
    raw.endheaders()
    assert raw.getresponse().status == 403


def test_the_token(guarded: Running) -> None:
    for path in ("/models", "/metrics"):
        assert httpx.get(guarded.url + path).status_code == 401
        assert httpx.get(guarded.url + path, params={"token": "wrong"}).status_code == 401
        assert httpx.get(guarded.url + path, params={"token": TOKEN}).status_code == 200
        assert httpx.get(guarded.url + path, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert httpx.get(guarded.url + path, headers={"Authorization": "Bearer"}).status_code == 401
        assert httpx.get(guarded.url + path, headers={"Authorization": f"Basic {TOKEN}"}).status_code == 401
    assert httpx.post(f"{guarded.url}/translate", json={"text": "a"}).json()["code"] == "unauthorized"
    assert httpx.get(f"{guarded.url}/health").status_code == 200
    assert knock(guarded.live) == 401
    assert knock(f"{guarded.live}?token=quite%20secret") == 101
    assert knock(guarded.live, Authorization=f"bearer {TOKEN}") == 101
    with Client(f"{guarded.live}?token=quite+secret") as client:
        client.text("Ein Mann ")
        client.until("word")


def test_a_websocket_elsewhere_is_not_found(guarded: Running) -> None:
    assert knock(guarded.live.replace("/live", "/behind/live")) == 404


def test_the_page_itself_needs_no_token(guarded: Running) -> None:
    """Its files hold nothing secret, and a browser does not pass the page's token on for them."""
    for path in ("", "main.js", "style.css"):
        assert httpx.get(f"{guarded.url}/{path}").status_code == 200
    assert httpx.get(f"{guarded.url}/nothing").status_code == 404


def test_an_allowed_page_elsewhere(guarded: Running) -> None:
    origin = {"Origin": "https://example.org"}
    assert knock(f"{guarded.live}?token=quite%20secret", **origin) == 101
    assert knock(guarded.live, **origin) == 401
    asked = httpx.options(f"{guarded.url}/translate", headers=origin | {"Access-Control-Request-Method": "POST"})
    assert asked.status_code == 204
    assert asked.headers["Access-Control-Allow-Origin"] == "https://example.org"
    assert "Authorization" in asked.headers["Access-Control-Allow-Headers"]
    answer = httpx.post(
        f"{guarded.url}/translate", json={"text": "a"}, headers=origin | {"Authorization": f"Bearer {TOKEN}"}
    )
    assert answer.status_code == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "https://example.org"
    assert answer.headers["Vary"] == "Origin"


@pytest.mark.parametrize("path", ["/", "/models", "/nothing", "/health"])
def test_every_answer_has_its_headers(server: Running, path: str) -> None:
    headers = httpx.get(server.url + path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    rules = dict(rule.strip().split(" ", 1) for rule in headers["Content-Security-Policy"].split(";"))
    own = f"127.0.0.1:{server.port}"
    assert rules == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": f"'self' ws://{own} wss://{own}",
        "img-src": "'self' data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'self'",
    }
    assert "server" not in headers


def test_an_allowed_page_may_show_the_captions_within_its_own(guarded: Running) -> None:
    rules = httpx.get(f"{guarded.url}/?view=captions").headers["Content-Security-Policy"]
    assert rules.endswith("; frame-ancestors 'self' https://example.org")


def test_a_host_is_not_copied_into_the_rules_unchecked(guarded: Running) -> None:
    headers = httpx.get(f"{guarded.url}/health", headers={"Host": "x; script-src *"}).headers
    assert "script-src *" not in headers["Content-Security-Policy"]


def test_an_error_inside_is_told_without_its_words(
    models: dict[str, Translator], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(models) as running:

        def fail(*arguments: object) -> None:
            raise RuntimeError("Geheimnis")

        monkeypatch.setattr(running.hub.metrics, "text", fail)
        answer = httpx.get(f"{running.url}/metrics")
        assert answer.status_code == 500
        assert answer.json() == {"code": "internal", "message": "the server failed; see its log"}
        monkeypatch.setattr("stacl.server.tracks.Tracks._feed", fail)
        with Client(running.live) as client:
            client.text("Geheimnis ")
            assert client.ended() == (1011, "internal")
            assert client.resume()["code"] == "unknown-session"
    assert "RuntimeError at" in caplog.text
    assert "Geheimnis" not in caplog.text
