"""Connections that hang, are not read, or come and go by the thousand: the server stays up and keeps nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect

from stacl.live.translator import Translator
from stacl.server.metrics import resident_memory
from tests.helpers import GERMAN
from tests.server.aftermath import UNLIMITED, settled, still_serves
from tests.server.client import Client, alone
from tests.server.conftest import Running, serving

HANDSHAKE = (
    b"GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0


@contextlib.contextmanager
def raw(running: Running, *, buffer: int | None = None) -> Iterator[socket.socket]:
    with socket.socket() as found:
        if buffer:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        found.connect(("127.0.0.1", running.port))
        found.settimeout(20)
        yield found


@contextlib.contextmanager
def websocket(running: Running, *, buffer: int | None = None) -> Iterator[socket.socket]:
    """A websocket without a library behind it that would read or answer."""
    with raw(running, buffer=buffer) as found:
        found.sendall(HANDSHAKE)
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            more = found.recv(1)
            assert more, f"the server went away after {answer!r}"
            answer += more
        assert answer.startswith(b"HTTP/1.1 101")
        yield found


def frame(text: str) -> bytes:
    """A text frame with a mask of zeros."""
    data = text.encode()
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
    return b"\x81" + size + bytes(4) + data


def test_half_open_connections_are_cut_off(models: dict[str, Translator]) -> None:
    beginnings = [b"", b"GET / HT", HANDSHAKE[:-2], b"\x16\x03\x01"]
    beginnings += [b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"]
    frames = [b"", b"\x81", frame("{")[:-1], frame("x" * 300)[:5]]
    with serving(models, start_seconds=0.7, stall_seconds=0.7) as running, contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(raw(running)) for _ in range(4) for _ in beginnings]
        for found, beginning in zip(sockets, beginnings * 4, strict=True):
            found.sendall(beginning)
        for part in frames * 4:
            sockets.append(stack.enter_context(websocket(running)))
            sockets[-1].sendall(part)
        still_serves(running)
        for found in sockets:
            with contextlib.suppress(ConnectionResetError):
                while found.recv(65536):
                    pass
        running.hub.sessions.clear()
        settled(running)


def test_more_connections_than_allowed_are_cut_off(models: dict[str, Translator]) -> None:
    with serving(models, connections=5) as running, contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(raw(running)) for _ in range(5)]
        with raw(running) as surplus, contextlib.suppress(ConnectionResetError):
            assert surplus.recv(1) == b""
        for found in sockets:
            found.close()
        time.sleep(0.2)
        still_serves(running)


def test_a_slow_reader_holds_up_nobody_and_loses_nothing(models: dict[str, Translator]) -> None:
    text = " ".join(GERMAN * 15)
    with serving(models, stall_seconds=1, unsent_events=200, queued_characters=2000, **UNLIMITED) as running:
        with websocket(running, buffer=4096) as reader:
            reader.sendall(frame('{"type": "start", "policies": ["wait-k:1", "wait-k:2"]}'))
            numbered = [
                json.dumps({"type": "text", "seq": number, "text": f"{word} "})
                for number, word in enumerate(text.split(), start=1)
            ]
            while not running.hub.sessions:
                time.sleep(0.01)
            reader.settimeout(1)
            with contextlib.suppress(TimeoutError, ConnectionError):  # nothing more is taken in at some time
                for message in numbered:
                    reader.sendall(frame(message))
            (session,) = running.hub.sessions.values()
            still_serves(running)
            unsent = queued = 0
            deadline = time.monotonic() + 20
            while session.listener:
                unsent, queued = max(unsent, session.log.unsent), max(queued, session.queued)
                assert time.monotonic() < deadline, "a client that does not read was not cut off"
                time.sleep(0.02)
            assert unsent < 500, "more and more is computed for somebody who does not read"
            assert queued < 2500, "more and more is taken in from somebody who does not read"
            while running.server.server_state.connections:
                assert time.monotonic() < deadline, "what he does not read is kept for him"
                time.sleep(0.02)
        assert 'stacl_dropped_total{reason="stalled"} 1' in httpx.get(f"{running.url}/metrics").text
        with Client(running.live, begin=False) as client:
            client.facts, client.said = {"session": session.key}, [json.loads(message) for message in numbered]
            assert client.resume()["type"] == "resumed"
            client.seq = len(numbered)
            client.finish()
    for track, policy in enumerate(("wait-k:1", "wait-k:2")):
        assert client.words(track) == alone(models["de-en"], policy, f"{text} ")[0]


def test_a_thousand_connects_and_disconnects(models: dict[str, Translator]) -> None:
    with serving(models, sessions=100, resume_seconds=0.5) as running:
        still_serves(running)
        settled(running)
        files, threads = open_files(), threading.active_count()

        async def visit(number: int, gate: asyncio.Semaphore) -> None:
            async with gate:
                websocket = await connect(running.live, compression=None).__aenter__()
                if number % 4:
                    await websocket.send('{"type": "start"}')
                    await websocket.send('{"type": "text", "seq": 1, "text": "Ein Mann schläft auf dem So"}')
                if number % 3:
                    await websocket.recv() if number % 4 else None
                if number % 2:
                    await websocket.close()
                else:  # as when a cable is pulled
                    websocket.transport.abort()

        async def everybody() -> None:
            gate = asyncio.Semaphore(40)
            await asyncio.gather(*(visit(number, gate) for number in range(1000)))

        before = resident_memory()
        asyncio.run(everybody())
        still_serves(running)
        settled(running)
        assert resident_memory() - before < 60 * 2**20
        assert open_files() <= files + 2
        assert threading.active_count() <= threads


def test_pings_that_nobody_reads_the_answers_of(models: dict[str, Translator]) -> None:
    ping = b"\x89\xfd" + bytes(4) + bytes(125)
    with serving(models) as running, websocket(running, buffer=4096) as flood:
        flood.settimeout(60)
        with pytest.raises(ConnectionError):
            flood.sendall(ping * 400_000)
        still_serves(running)


def test_who_reads_slowly_gets_the_whole_answer(models: dict[str, Translator]) -> None:
    """Longer than the patience with who says nothing: reading an answer is not saying nothing."""
    with serving(models, start_seconds=2) as running:
        running.hub.models |= {f"model {number}": models["de-en"] for number in range(40_000)}
        with raw(running, buffer=4096) as reader:
            reader.sendall(b"GET /models HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = b""
            while more := reader.recv(16_384):
                answer += more
                time.sleep(0.005)
        head, _, content = answer.partition(b"\r\n\r\n")
        assert b"200 OK" in head
        assert len(json.loads(content)["models"]) == 40_000 + len(models)
