"""`stacl serve` as a process: one line to begin with, clear refusals, no user text in its log, an end in order."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin

from stacl.__main__ import main
from stacl.commands import serve
from stacl.live.translator import Translator
from stacl.server.run import listen
from stacl.server.settings import Settings
from stacl.support.errors import UserError
from tests.conftest import ROOT
from tests.helpers import GERMAN
from tests.server.client import Client, alone

pytestmark = pytest.mark.slow

SECRET = "Donaudampfschifffahrtsgesellschaft"


class Process:
    """A running `stacl serve`."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "stacl", "serve", *map(str, arguments), "--port", "0"]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
        assert self.process.stderr is not None
        self.announcement = self.process.stderr.readline()
        found = re.search(r"http://[^ ]*:(\d+)/", self.announcement)
        assert found, self.announcement
        self.url = f"http://127.0.0.1:{found[1]}"
        self.live = f"ws://127.0.0.1:{found[1]}/live"
        while True:
            with contextlib.suppress(httpx.HTTPError):
                httpx.get(f"{self.url}/health")
                return

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """The exit code and what was written to stderr after the announcement."""
        self.process.send_signal(number)
        _, rest = self.process.communicate(timeout=30)
        return self.process.returncode, rest


@contextlib.contextmanager
def process(*arguments: object) -> Iterator[Process]:
    found = Process(*arguments)
    try:
        yield found
    finally:
        found.process.kill()
        found.process.communicate()


def test_it_says_where_it_is_and_what_it_has(model_folder: Path) -> None:
    with process(f"mine={model_folder}", model_folder) as running:
        port = running.url.rpartition(":")[2]
        expected = f"stacl serve: open http://127.0.0.1:{port}/ (models: mine, nonsense; Ctrl-C ends)\n"
        assert running.announcement == expected
        assert [model["name"] for model in httpx.get(f"{running.url}/models").json()["models"]] == ["mine", "nonsense"]
        assert running.end(signal.SIGINT) == (0, "")


def test_what_is_due_is_said_before_the_end(model_folder: Path, models: dict[str, Translator]) -> None:
    text = " ".join(GERMAN * 8) + " Zwei kleine Hunde "  # the last sentence is not over
    patient = ("--workers", 1, "--limit", "drain_seconds=60")
    with process(model_folder, *patient) as running, Client(running.live, policies=["wait-k:1"]) as client:
        client.text(text)
        client.until("heard")  # it is taken, and most of it is still to be translated
        running.process.send_signal(signal.SIGTERM)
        assert client.ended() == (1001, "shutdown")
        assert client.errors[-1]["code"] == "shutdown"
        assert client.errors[-1]["fatal"]
        assert "all pending output was sent" in client.errors[-1]["message"]
        assert [event["text"] for event in client.events if event["type"] == "heard"] == text.split()
        live = models["de-en"].stream("wait-k:1", segment=True)
        expected = live.feed(text) + live.end()
        assert client.events[-1]["type"] == "segment"
        assert client.words() == [(word.text, word.delay, word.sentence) for word in expected]
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{running.url}/health")
        assert running.process.wait(20) == 0


def test_an_end_does_not_wait_for_ever(model_folder: Path) -> None:
    with process(model_folder, "--limit", "drain_seconds=0.5") as running, Client(running.live) as client:
        client.text("Hund " * 12_000)
        client.until("heard")
        began = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        assert client.ended()[0] == 1001
        assert "not all accepted text was translated" in client.errors[-1]["message"]
        assert running.process.wait(20) == 0
        assert time.monotonic() - began < 15


def test_a_long_request_is_told_of_the_end(model_folder: Path) -> None:
    limits = ("--limit", "drain_seconds=0.5", "--limit", "request_bytes=1000000")
    with process(model_folder, *limits) as running, ThreadPoolExecutor() as pool:
        asked = {"text": "Ein Hund springt. " * 5_000, "beam": 8}
        answer = pool.submit(httpx.post, f"{running.url}/translate", json=asked, timeout=60)
        while "stacl_requests_total 1" not in httpx.get(f"{running.url}/metrics").text:
            time.sleep(0.05)
        began = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        assert answer.result().status_code == 503
        assert answer.result().json()["code"] == "shutdown"
        assert running.process.wait(20) == 0
        assert time.monotonic() - began < 5
        assert running.process.stderr is not None
        assert running.process.stderr.read() == ""


def test_a_second_interrupt_ends_at_once(model_folder: Path) -> None:
    with (
        process(model_folder, "--limit", "drain_seconds=60", "--limit", "request_bytes=1000000") as running,
        Client(running.live) as client,
        ThreadPoolExecutor() as pool,
    ):
        client.text("Hund " * 12_000)
        client.until("heard")
        asked = {"text": "Ein Hund springt. " * 5_000, "beam": 8}
        answer = pool.submit(httpx.post, f"{running.url}/translate", json=asked, timeout=60)
        while "stacl_requests_total 1" not in httpx.get(f"{running.url}/metrics").text:
            time.sleep(0.05)
        running.process.send_signal(signal.SIGINT)
        with contextlib.suppress(httpx.TransportError):  # once it no longer listens, it has begun to end
            while True:
                httpx.get(f"{running.url}/health")
        began = time.monotonic()
        code, written = running.end(signal.SIGINT)
        assert time.monotonic() - began < 15
        assert (code, written) == (130, "")
        assert answer.result().status_code == 503


def test_no_user_text_in_the_log(model_folder: Path) -> None:
    with process(model_folder) as running:
        with Client(f"{running.live}?note={SECRET}", policies=["wait-k:1"]) as client:
            client.text(f"{SECRET} {SECRET}. ")
            client.raw(f'{{"type": "{SECRET}", "seq": 2}}')
            client.raw(SECRET)
            client.send("policy", track=0, policy=SECRET)
            client.finish()
        httpx.post(f"{running.url}/translate", json={"text": SECRET, "model": SECRET})
        httpx.get(f"{running.url}/{SECRET}?token={SECRET}")
        with socket.create_connection(("127.0.0.1", int(running.url.rpartition(":")[2]))) as raw:
            raw.sendall(f"{SECRET} / HTTP/9.9\r\n\r\n".encode())
            raw.recv(1000)
        with Client(running.live) as client:  # a frame that claims to be text and is not
            client.socket.send(SECRET.encode() + b"\xff", text=True)
            client.ended()
        code, written = running.end()
        assert code == 0
        assert SECRET not in written
        assert client.facts["session"] not in written
        assert "Traceback" not in written


def test_another_host_needs_a_token(model_folder: Path) -> None:
    with process(model_folder, "--host", "0.0.0.0") as running:
        found = re.search(r"/\?token=(\S+) \(", running.announcement)
        assert found, running.announcement
        assert len(found[1]) >= 20
        assert httpx.get(f"{running.url}/models").status_code == 401
        assert httpx.get(f"{running.url}/models", params={"token": found[1]}).status_code == 200


def test_a_token_of_ones_own_is_not_written_down(model_folder: Path) -> None:
    with process(model_folder, "--token", SECRET) as running:
        assert "/?token=TOKEN (" in running.announcement
        code, written = running.end()
        assert code == 0
        assert SECRET not in running.announcement + written


def test_why_a_websocket_was_refused_is_written_down_once(model_folder: Path) -> None:
    with process(model_folder) as running:
        for _ in range(3):
            with pytest.raises(InvalidStatus):
                connect(running.live, origin=Origin("https://example.org")).close()
        code, written = running.end()
        assert code == 0
        (line,) = written.splitlines()
        assert "refused a websocket: foreign-origin: " in line
        assert "--allow-origin" in line


def _settings(arguments: list[str], environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Settings:
    """What the command makes of its options in this environment."""
    monkeypatch.delenv("STACL_TOKEN", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    parser = argparse.ArgumentParser()
    serve.configure(parser)
    return serve._settings(parser.parse_args(arguments))


@pytest.mark.parametrize(
    ("arguments", "environment", "token", "hosts"),
    [
        ([], {}, None, ("localhost", "127.0.0.1", "::1", "127.0.0.1")),
        (["--host", "127.0.0.5"], {}, None, ("localhost", "127.0.0.1", "::1", "127.0.0.5")),
        (["--token", "t"], {}, "t", ("localhost", "127.0.0.1", "::1", "127.0.0.1")),
        (["--host", "0.0.0.0", "--token", "t"], {"STACL_TOKEN": "e"}, "t", None),
        (["--host", "0.0.0.0"], {"STACL_TOKEN": "e"}, "e", None),
        (["--host", "0.0.0.0", "--no-token"], {"STACL_TOKEN": "e"}, None, None),
        ([], {"STACL_TOKEN": ""}, None, ("localhost", "127.0.0.1", "::1", "127.0.0.1")),
        ([], {"STACL_TOKEN": " \n"}, None, ("localhost", "127.0.0.1", "::1", "127.0.0.1")),
        (["--host", "0.0.0.0"], {"STACL_TOKEN": "from-a-file\n"}, "from-a-file", None),
    ],
)
def test_tokens(
    arguments: list[str],
    environment: dict[str, Any],
    token: str | None,
    hosts: tuple[str, str, str, str] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = _settings(arguments, environment, monkeypatch)
    assert (settings.token, settings.hosts) == (token, hosts)


@pytest.mark.parametrize(("arguments", "environment"), [([], {}), ([], {"STACL_TOKEN": ""})])
def test_a_server_for_others_makes_up_a_token_where_none_is_given(
    arguments: list[Any], environment: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    token = _settings(["--host", "0.0.0.0", *arguments], environment, monkeypatch).token
    assert token is not None
    assert len(token) >= 16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["/nowhere/x"], "no model /nowhere/x"),
        (["a=/nowhere", "a=/elsewhere"], "two models are called 'a'; rename one: NAME=/elsewhere"),
        (["=x"], "must be a folder or NAME=FOLDER, not '=x'"),
        (["x", "--token", "a", "--no-token"], "--token and --no-token cannot be combined"),
        (["x", "--token", ""], "--token is empty"),
        (["x", "--token", "schlüssel"], "must be printable ASCII characters without spaces"),
        (["x", "--token", "two words"], "must be printable ASCII characters without spaces"),
        (["x", "--workers", "0"], "--workers must be from 1 to 64, not 0"),
        (["x", "--limit", "session=5"], "unknown limit 'session'; did you mean sessions?"),
        (["x", "--limit", "sessions=many"], "--limit sessions=N needs a whole number above 0, not 'many'"),
        (["x", "--limit", "idle_seconds=inf"], "--limit idle_seconds=N needs a number above 0, not 'inf'"),
        (["x", "--allow-origin", "example.org"], "--allow-origin needs a scheme and a host"),
        (["x", "--allow-origin", "http://["], "--allow-origin needs a scheme and a host"),
        (["x", "--allow-origin", "http://x:65536"], "--allow-origin needs a scheme and a host"),
        (["x", "--allow-origin", "http://[:::]"], "--allow-origin 'http://[:::]' has an invalid host"),
        (["x", "--allow-origin", "https://-ü-.example"], "--allow-origin 'https://-ü-.example' has an invalid host"),
        (["x", "--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid:0"),
        (["x", "--port", "99999"], "--port must be from 0 to 65535, not 99999"),
        (["x", "--host", "a" * 80], "--host needs a name or an address"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--port", "0", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("stacl serve: ")
    assert message in err


def test_a_port_in_use_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "x", "--port", str(port)]) == 2
    expected = f"stacl serve: port {port} of 127.0.0.1 is in use; choose another with --port, or 0 for any free one\n"
    assert capsys.readouterr().err == expected


def test_two_servers_that_still_load_do_not_share_a_port() -> None:
    with listen("127.0.0.1", 0) as taken, pytest.raises(UserError, match="is in use"):
        listen("127.0.0.1", taken.getsockname()[1])


def test_without_its_libraries_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith(("starlette", "stacl.server.app"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    assert main(["serve", "x"]) == 2
    assert "install stacl[serve]" in capsys.readouterr().err


def test_shipped_models_are_the_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("stacl.runs.pretrained.names", lambda: ["de-en", "zh-en"])
    assert serve._folders([]) == {"de-en": "de-en", "zh-en": "zh-en"}
    assert serve._folders(["zh-en", str(tmp_path / "mine")]) == {"zh-en": "zh-en", "mine": str(tmp_path / "mine")}
    monkeypatch.setattr("stacl.runs.pretrained.names", list)
    assert main(["serve"]) == 2
    assert "no shipped model" in capsys.readouterr().err


def test_what_is_said_alone(model_folder: Path, models: dict[str, Translator]) -> None:
    """The model that the process loads is the one that other tests compare with."""
    with process(model_folder) as running, Client(running.live, policies=["wait-k:2"]) as client:
        client.text(GERMAN[1])
        client.finish()
    assert client.words() == alone(models["de-en"], "wait-k:2", GERMAN[1])[0]
