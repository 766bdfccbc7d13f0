"""A connection drops; the session goes on, and not a word is lost or repeated."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest

from stacl.live.translator import Translator
from tests.helpers import GERMAN
from tests.server.client import Client, alone
from tests.server.conftest import Running, serving

TEXT = " ".join(GERMAN * 2)


@pytest.mark.parametrize("seed", range(3))
def test_drops_anywhere_lose_and_repeat_nothing(server: Running, seed: int) -> None:
    rng = random.Random(seed)
    policies = ["wait-k:1", "wait-k:4"]
    with Client(server.live, policies=policies) as client:
        for chunk in TEXT.split(" "):
            client.text(f"{chunk} ")
            if rng.random() < 0.3:
                client.answer()
            if rng.random() < 0.12:
                client.drop()
                assert client.resume()["type"] == "resumed"
        client.finish()  # which checks the numbers of all events
    for track, policy in enumerate(policies):
        assert client.words(track) == alone(server.models["de-en"], policy, f"{TEXT} ")[0]


def test_what_is_computed_meanwhile_is_kept(server: Running) -> None:
    with Client(server.live) as client:
        client.text(TEXT)
        client.send("close")
        client.drop()
        time.sleep(0.3)
        assert client.resume().keys() >= {"session", "model", "source", "target", "policies", "limits", "accepted"}
        client.until("closed")
    assert client.words() == alone(server.models["de-en"], None, TEXT)[0]


def test_a_session_that_was_closed_can_be_read_again(server: Running) -> None:
    """The connection may drop just when the last message is on its way."""
    with Client(server.live) as client:
        client.text(GERMAN[0])
        events = list(client.finish())
        client.events.clear()
        assert client.resume()["accepted"] == 2
        client.until("closed")
        assert [event["type"] for event in client.events] == [event["type"] for event in events]


def test_what_is_sent_again_is_not_measured_again(models: dict[str, Translator]) -> None:
    """The outage is not the server's delay."""
    with serving(models) as running, Client(running.live) as client:
        client.text(GERMAN[0])
        client.finish()
        once = running.hub.metrics.text()
        client.events.clear()
        client.resume()
        client.until("closed")
        again = running.hub.metrics.text()
    delays = [[line for line in text.splitlines() if "word_delay" in line] for text in (once, again)]
    assert delays[0] == delays[1]


def test_who_comes_back_takes_over(server: Running) -> None:
    with Client(server.live) as client, Client(server.live, begin=False) as other:
        client.text("Ein Mann ")
        client.until("word")
        other.facts, other.events, other.said = client.facts, list(client.events), client.said
        other.send("resume", number=False, session=client.facts["session"], received=len(client.events))
        assert other.answer()["type"] == "resumed"
        assert client.ended() == (4001, "taken-over")
        assert client.errors[-1]["fatal"]
        assert client.errors[-1]["accepted"] == 1
        other.seq = client.seq
        other.text("schläft.\n")
        other.until("segment")


def test_policies_of_a_resumed_session_are_the_present_ones(server: Running) -> None:
    with Client(server.live, policies=["wait-k:3", "full"]) as client:
        client.send("policy", track=0, policy="wait-k:7")
        client.until("policy")
        client.drop()
        assert client.resume()["policies"] == ["wait-k:7", "full"]


def test_numbers_of_the_client(server: Running) -> None:
    with Client(server.live) as client:
        client.text("Ein ")
        for number in (1, 0, -3):  # taken already
            client.raw(json.dumps({"type": "text", "seq": number, "text": "falsch "}))
        client.raw(json.dumps({"type": "text", "seq": 4, "text": "falsch "}))
        error = client.until("error")
        assert error["code"] == "out-of-order"
        assert error["message"] == "expected seq 2, not 4"
        assert not error["fatal"]
        client.text("Mann ")
        # What is refused has no effect, but its number is used up.
        client.send("policy", track=5, policy="full")
        assert "there is no track 5" in client.until("error")["message"]
        client.send("policy", track=0, policy="wait-q:3")
        assert client.until("error")["message"] == "no policy is called 'wait-q'; did you mean wait-k?"
        client.send("policy", track=0, policy="wait-k:2,unit=piece")
        assert "unit cannot change within a sentence" in client.until("error")["message"]
        client.text("schläft")
        events = client.finish()
    assert [event["text"] for event in events if event["type"] == "heard"] == ["Ein", "Mann", "schläft"]


def test_nothing_follows_a_close(models: dict[str, Translator]) -> None:
    with serving(models) as running, Client(running.live) as client:
        client.text("Hund " * 200)  # enough to be still busy
        client.send("close")
        client.text("zu spät")
        assert client.until("error")["code"] == "closing"
        client.until("closed")


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        ({"session": "nobody", "received": 0}, "unknown-session", "no such session"),
        ({"session": "nobody"}, "bad-message", "missing required field received"),
        ({"received": 3}, "bad-message", "missing required field session"),
    ],
)
def test_wrong_keys(server: Running, message: dict[str, Any], code: str, text: str) -> None:
    with Client(server.live, begin=False) as client:
        client.send("resume", number=False, **message)
        error = client.answer()
        assert (error["code"], error["fatal"]) == (code, True)
        assert text in error["message"]
        assert client.ended() == (1008, code)


def test_more_than_was_sent_cannot_have_been_received(server: Running) -> None:
    with Client(server.live) as client:
        client.drop()
        client.socket = client.connect()
        client.send("resume", number=False, session=client.facts["session"], received=5)
        assert client.answer()["message"] == "received is 5, but only 0 messages were sent"


def test_what_is_no_longer_kept_is_said_to_be_lost(models: dict[str, Translator]) -> None:
    with serving(models, kept_events=20) as running, Client(running.live) as client:
        client.text(TEXT)
        client.finish()
        (session,) = running.hub.sessions.values()
        kept = len(session.log._kept)  # 20, and what had not been sent yet when the last came
        assert 20 <= kept < 60 < client.events[-1]["n"], "a session of hours must not need more and more memory"
        first = client.events[-1]["n"] - kept + 1
        client.events.clear()
        error = client.resume()
        assert error["code"] == "lost"
        assert error["message"] == f"resume needs messages from 1 on, but only those from {first} on are kept"
        assert client.ended()[0] == 1008


def test_patience_ends(models: dict[str, Translator]) -> None:
    """Nobody comes back; nothing is heard; nothing is even asked for."""
    with serving(models, resume_seconds=0.3, idle_seconds=3, start_seconds=2) as running:
        with Client(running.live) as client:
            client.drop()
            deadline = time.monotonic() + 20
            while running.hub.sessions:
                assert time.monotonic() < deadline, "a session that nobody came back to is kept"
                time.sleep(0.05)
            assert client.resume()["code"] == "unknown-session"
        with Client(running.live) as idle:
            began = time.monotonic()
            assert idle.ended() == (1008, "idle")
            assert 2.9 < time.monotonic() - began < 5.5, "the end of the sentence that is not there starts no new wait"
            assert "nothing was received for 3 seconds" in idle.errors[-1]["message"]
        with Client(running.live, policies=["full"]) as broken_off:
            broken_off.text("Ein Mann schläft ")
            assert broken_off.ended() == (1008, "idle")
            assert [word for word, _, _ in broken_off.words()], "a sentence that nobody ended is said all the same"
            assert broken_off.events[-1]["type"] == "segment"
            assert broken_off.errors[-1]["accepted"] == 1
        with Client(running.live, begin=False) as silent:
            assert silent.ended() == (1008, "not-started")
        assert running.hub.sessions == {}
