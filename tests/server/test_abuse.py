"""Whatever is sent, or sent too fast: it is refused in words, others are served, and nothing is kept."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from stacl.live.translator import Translator
from tests.helpers import GERMAN
from tests.server.aftermath import UNLIMITED, settled, still_serves
from tests.server.client import Client
from tests.server.conftest import Running, serving


def malformed(rng: random.Random, seq: int) -> str | bytes:
    """Anything but what is expected; `seq` is the last number that was used."""
    whole = json.dumps({"type": "text", "seq": seq + rng.randint(2, 99), "text": "Hund "})
    wrong: list[str | bytes] = [
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
    return rng.choice(wrong)


def refused(rng: random.Random, seq: int) -> str:
    """With the right number, which it uses up, and yet wrong."""
    wrong: list[dict[str, Any]] = [
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
    async with connect(url, compression=None, open_timeout=None, ping_interval=None) as websocket:
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


def test_ten_thousand_malformed_messages(models: dict[str, Translator]) -> None:
    # The ten share one loop: on a slow machine the last may wait long for its turn to begin.
    with serving(models, resume_seconds=0.5, start_seconds=300, **UNLIMITED) as running:

        async def everybody() -> list[int]:
            return await asyncio.gather(*(misbehave(running.live, number, 1000) for number in range(10)))

        with ThreadPoolExecutor() as beside:
            calm = beside.submit(still_serves, running)
            answered = asyncio.run(everybody())
            calm.result(30)  # others were served meanwhile
        assert answered == [1000] * 10
        still_serves(running)
        settled(running)


def test_what_is_too_large_is_refused_in_words(models: dict[str, Translator]) -> None:
    with serving(models) as running:
        for text, told in (("ä" * 40_000, True), ("a" * 100_000, True), ("a" * 200_000, False)):
            with Client(running.live) as client:
                client.raw(json.dumps({"type": "text", "seq": 1, "text": text}, ensure_ascii=False))
                assert client.ended()[0] == 1009
                assert [error["code"] for error in client.errors] == ["too-large"] * told
                # The session is not lost: what was too large was not taken.
                assert client.resume()["accepted"] == 0
        still_serves(running)


def test_who_is_refused_at_once_still_learns_of_its_session(models: dict[str, Translator]) -> None:
    """Both come before the server has said a word: without `started` there would be nothing to resume."""

    async def all_said(url: str) -> list[dict[str, object]]:
        heard = []
        async with connect(url) as socket:
            await socket.send(json.dumps({"type": "start"}))
            await socket.send(json.dumps({"type": "text", "seq": 1, "text": "a" * 100_000}))
            with contextlib.suppress(ConnectionClosed):
                while True:
                    heard.append(json.loads(await socket.recv()))
        return heard

    with serving(models) as running:
        started, refusal = asyncio.run(all_said(running.live))
        assert (started["type"], refusal["code"]) == ("started", "too-large")


def test_who_speaks_too_fast_is_sent_away_and_may_come_back(models: dict[str, Translator]) -> None:
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


def test_a_typist_who_plays_is_never_too_fast(server: Running) -> None:
    """Twenty keys a second, a message each, and a policy that changes all the time."""
    with Client(server.live) as client:
        for number in range(90):
            client.text("a ")
            client.send("policy", track=0, policy=f"wait-k:{1 + number % 9}")
        client.finish()
        assert not client.errors


def test_as_many_sessions_as_there_are_places(models: dict[str, Translator]) -> None:
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
        ({"model": "xx"}, "unknown-model", "unknown model 'xx'; known: de-en, zh-en"),
        ({"policies": ["wait-q:3"]}, "bad-policy", "did you mean wait-k?"),
        ({"policies": ["evil.py:g"]}, "bad-policy", "no policy is called 'evil.py'"),
        ({"policies": ["wait-k:" + "9" * 200]}, "bad-policy", "expected a policy such as wait-k:3"),
        ({"policies": ["wait-k:3,c=1,c=\ud800"]}, "bad-policy", "\\ud800"),
        ({"policies": []}, "bad-message", "a session has 1 to 8 policies, not 0"),
        ({"policies": ["full"] * 9}, "bad-message", "a session has 1 to 8 policies, not 9"),
        ({"policies": "full"}, "bad-message", "policies: expected array"),
        ({"segment": "yes"}, "bad-message", "segment: expected bool, got str"),
        ({"polices": ["full"]}, "bad-message", "'start' has no field 'polices'; did you mean policies?"),
    ],
)
def test_starts_that_are_refused(server: Running, start: dict[str, Any], code: str, message: str) -> None:
    with Client(server.live, begin=False) as client:
        client.send("start", number=False, **start)
        error = client.answer()
        assert (error["code"], error["fatal"]) == (code, True)
        assert message in error["message"]


def test_the_first_message_is_a_greeting(server: Running) -> None:
    with Client(server.live, begin=False) as client:
        client.text("Hallo ")
        assert client.ended() == (1008, "not-started")
    with Client(server.live) as client:
        client.send("start", number=False)
        assert "this connection has a session already" in client.until("error")["message"]
