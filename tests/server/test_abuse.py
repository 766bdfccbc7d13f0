"""Whatever is sent, or not sent, or not read: the server stays up, serves others, and keeps nothing."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from stacl.server.live import Connection
from stacl.server.metrics import resident_memory
from stacl.server.session import LiveSession
from tests.helpers import GERMAN
from tests.server.client import Client, alone
from tests.server.conftest import Running, serving

UNLIMITED = {"messages_per_second": 1e9, "message_burst": 10**9}
HANDSHAKE = (
    b"GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def still_serves(running: Running) -> None:
    """Somebody else is translated for as if nothing had happened."""
    with Client(running.live, policies=["wait-k:1"]) as client:
        client.text(GERMAN[0])
        client.finish()
    assert client.words() == alone(running.models["de-en"], "wait-k:1", GERMAN[0])[0]


def settled(running: Running) -> None:
    """Wait until nobody is connected and nothing is kept."""
    deadline = time.monotonic() + 20
    while running.hub.connections or running.hub.sessions:
        assert time.monotonic() < deadline, (len(running.hub.connections), len(running.hub.sessions))
        time.sleep(0.05)
    gc.collect()
    kept = [thing for thing in gc.get_objects() if type(thing) in (Connection, LiveSession)]
    owners = [thing._hub.metrics if type(thing) is Connection else thing._metrics for thing in kept]
    assert running.hub.metrics not in owners, "connections or sessions are kept by somebody"


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").exists() else 0


def malformed(rng: random.Random, seq: int) -> str | bytes:
    """Anything but what is expected; `seq` is the last number that was used."""
    whole = json.dumps({"type": "text", "seq": seq + rng.randint(2, 99), "text": "Hund "})
    return rng.choice(
        [
            whole,  # out of order
            whole[: rng.randrange(len(whole))],
            whole.encode(),
            rng.randbytes(rng.randint(0, 300)),
            "".join(chr(rng.choice((rng.randrange(32, 0xD800), rng.randrange(0xE000, 0x110000)))) for _ in range(40)),
            "[" * rng.randint(1, 20_000),
            '{"a":' * rng.randint(1, 5_000),
            "9" * 6_000,
            json.dumps({"type": "text", "seq": rng.choice([None, "1", 1.5, True, [], 10**30]), "text": "a"}),
            json.dumps({"type": "start", "policies": ["full"] * 99}),
            json.dumps({"type": "resume", "session": "x", "received": -1}),
            json.dumps(rng.choice([None, 1, "text", [1], True, 1e308])),
            '{"type": "text", "seq": NaN, "text": "a"}',
            '{"type": "text", "type": "end"}',
        ]
    )


def refused(rng: random.Random, seq: int) -> str:
    """With the right number, which it uses up, and yet wrong."""
    wrong = [
        {"type": rng.choice(["txt", "heard", "", None, 7, [], {}])},
        {"type": "text", "text": rng.choice([None, 5, ["a"], {}])},
        {"type": "text", "text": "a", "x" * 300: 1},
        {"type": "policy", "track": rng.choice([10**12, -1, 1, "0", None]), "policy": "full"},
        {"type": "policy", "track": 0, "policy": rng.choice(["", "x" * 500, "wait-k:0", "wait-k:1,c=2", "a.py:b", 3])},
        {"type": "policy", "track": 0, "policy": "wait-k:2,unit=piece"},
    ]
    return json.dumps(rng.choice(wrong) | {"seq": seq})


async def misbehave(url: str, number: int, messages: int) -> int:
    """Send so many malformed messages; how many were answered. Every so often the session is used in earnest."""
    rng, seq, answered = random.Random(number), 0, 0
    async with connect(url, compression=None) as websocket:
        await websocket.send('{"type": "start", "policies": ["wait-k:1"]}')

        async def read() -> int:
            errors = 0
            async for text in websocket:
                message = json.loads(text)
                if message["type"] == "error":
                    assert message["message"]
                    assert "\n" not in message["message"]
                    assert len(message["message"]) < 400
                    assert not message["fatal"]
                    errors += 1
            return errors

        reading = asyncio.create_task(read())
        for step in range(messages):
            seq += step % 2
            await websocket.send(refused(rng, seq) if step % 2 else malformed(rng, seq))
            if step % 50 == 0:
                seq += 1
                await websocket.send(json.dumps({"type": "text", "seq": seq, "text": "Hund "}))
        await websocket.send(json.dumps({"type": "close", "seq": seq + 1}))
        answered = await reading
        assert websocket.close_code == 1000
    return answered


def test_ten_thousand_malformed_messages(models):
    with serving(models, resume_seconds=0.5, **UNLIMITED) as running:

        async def everybody() -> list[int]:
            return await asyncio.gather(*(misbehave(running.live, number, 1000) for number in range(10)))

        calm = threading.Thread(target=still_serves, args=(running,))
        calm.start()
        answered = asyncio.run(everybody())
        calm.join(30)
        assert answered == [1000] * 10
        still_serves(running)
        settled(running)


def test_what_is_too_large_is_refused_in_words(models):
    with serving(models, resume_seconds=0.5) as running:
        for text, told in (("ä" * 40_000, True), ("a" * 100_000, True), ("a" * 200_000, False)):
            with Client(running.live) as client:
                client.raw(json.dumps({"type": "text", "seq": 1, "text": text}, ensure_ascii=False))
                assert client.ended()[0] == 1009
                assert [error["code"] for error in client.errors] == ["too-large"] * told
                # The session is not lost: what was too large was not taken.
                assert client.resume()["accepted"] == 0
        still_serves(running)


def test_who_speaks_too_fast_is_sent_away_and_may_come_back(models):
    with serving(models, messages_per_second=50, message_burst=20) as running, Client(running.live) as client:
        for word in GERMAN[0].split()[:6] * 10:
            with contextlib.suppress(ConnectionClosed):
                client.text(f"{word} ")
        assert client.ended() == (1008, "too-fast")
        assert "at most 50 messages a second, or 20 at once" in client.errors[-1]["message"]
        # Sent again at a walking pace, nothing is lost.
        client.socket = client.connect()
        client.send("resume", number=False, session=client.facts["session"], received=len(client.events))
        missing = client.said[client.answer()["accepted"] :]
        assert 30 < len(missing) < 60
        for message in missing:
            time.sleep(1 / 45)
            client.raw(json.dumps(message))
        events = client.finish()
        assert sum(event["type"] == "heard" for event in events) == 60


def test_a_typist_who_plays_is_never_too_fast(server):
    """Twenty keys a second, a message each, and a policy that changes all the time."""
    with Client(server.live) as client:
        for number in range(90):
            client.text("a ")
            client.send("policy", track=0, policy=f"wait-k:{1 + number % 9}")
        client.finish()
        assert not client.errors


def test_as_many_sessions_as_there_are_places(models):
    with serving(models, sessions=2) as running:
        with Client(running.live), Client(running.live) as second, Client(running.live, begin=False) as third:
            third.send("start", number=False)
            assert third.ended() == (1013, "full")
            assert third.errors[0]["message"] == "all 2 sessions are taken; try again later"
            # Who is away gives way.
            second.drop()
            time.sleep(0.2)
            with Client(running.live):
                assert second.resume()["code"] == "unknown-session"
        with Client(running.live) as fourth:
            fourth.text("Ein Mann ")
            fourth.until("word")


@pytest.mark.parametrize(
    ("start", "code", "message"),
    [
        ({"model": "xx"}, "unknown-model", "no model is called 'xx'; known: de-en, zh-en"),
        ({"policies": ["wait-q:3"]}, "bad-policy", "did you mean wait-k?"),
        ({"policies": ["evil.py:g"]}, "bad-policy", "no policy is called 'evil.py'"),
        ({"policies": ["wait-k:" + "9" * 200]}, "bad-policy", "plain numbers"),
        ({"policies": []}, "bad-message", "policies must be 1 to 8, not 0"),
        ({"policies": ["full"] * 9}, "bad-message", "policies must be 1 to 8, not 9"),
        ({"policies": "full"}, "bad-message", "policies must be a list of strings"),
        ({"segment": "yes"}, "bad-message", "segment must be true or false, not 'yes'"),
        ({"polices": ["full"]}, "bad-message", "'start' has no field 'polices'; did you mean policies?"),
    ],
)
def test_starts_that_are_refused(server, start, code, message):
    with Client(server.live, begin=False) as client:
        client.send("start", number=False, **start)
        error = client.answer()
        assert (error["code"], error["fatal"]) == (code, True)
        assert message in error["message"]


def test_the_first_message_is_a_greeting(server):
    with Client(server.live, begin=False) as client:
        client.text("Hallo ")
        assert client.ended() == (1008, "not-started")
    with Client(server.live) as client:
        client.send("start", number=False)
        assert "this connection has its session" in client.until("error")["message"]


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
            answer += found.recv(1)
        assert answer.startswith(b"HTTP/1.1 101")
        yield found


def frame(text: str) -> bytes:
    """A text frame with a mask of zeros."""
    data = text.encode()
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
    return b"\x81" + size + bytes(4) + data


def test_half_open_connections_are_cut_off(models):
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


def test_more_connections_than_allowed_are_cut_off(models):
    with serving(models, connections=5) as running, contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(raw(running)) for _ in range(5)]
        with raw(running) as surplus, contextlib.suppress(ConnectionResetError):
            assert surplus.recv(1) == b""
        for found in sockets:
            found.close()
        time.sleep(0.2)
        still_serves(running)


def test_a_slow_reader_holds_up_nobody_and_loses_nothing(models):
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


def test_a_thousand_connects_and_disconnects(models):
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


def test_pings_that_nobody_reads_the_answers_of(models):
    ping = b"\x89\xfd" + bytes(4) + bytes(125)
    with serving(models) as running, websocket(running, buffer=4096) as flood:
        flood.settimeout(2)
        with pytest.raises(ConnectionError):
            flood.sendall(ping * 400_000)
        still_serves(running)
