"""What is said over the websocket is what a session of its own says, however the text is cut."""

from __future__ import annotations

import random

import pytest

from stacl.live.translator import Translator
from stacl.server import aligner
from tests.helpers import GERMAN
from tests.server.client import Client, alone
from tests.server.conftest import Running, serving

TEXT = " ".join(GERMAN[:3]) + "\nAm 3. Oktober kam Dr. Meier.\n\n" + GERMAN[4] + "\r\n Ende 😀 ohne Punkt"


def chunks(text: str, rng: random.Random) -> list[str]:
    """A text cut anywhere."""
    places = sorted(rng.sample(range(len(text)), rng.randint(0, 30)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


def test_the_shape_of_a_conversation(server: Running) -> None:
    with Client(server.live) as client:
        assert client.facts.keys() == {"type", "session", "model", "source", "target", "policies", "limits"}
        assert client.facts["model"] == "de-en"
        assert (client.facts["source"], client.facts["target"]) == ("de", "en")
        assert client.facts["policies"] == ["wait-k:2"]
        client.text("Ein Mann schläft.\n")
        heard = client.until("heard")
        assert heard == {"type": "heard", "n": 1, "segment": 0, "index": 1, "text": "Ein", "gap": ""}
        word = client.until("word")
        assert word.keys() == {
            *("type", "n", "track", "segment", "index", "text", "gap", "delay", "seconds", "waited"),
        }
        assert (word["track"], word["segment"], word["index"], word["delay"]) == (0, 0, 1, 2)
        assert 0 <= word["waited"] < 10
        segment = client.until("segment")
        assert segment["source"] == ["Ein", "Mann", "schläft."]
        assert segment["target"] == [text for text, _, _ in client.words()]
        assert segment["delays"] == [delay for _, delay, _ in client.words()]
        assert len(segment["read_times"]) == 3
        assert len(segment["write_times"]) == len(segment["target"])
        assert segment["latency"]["AL"] > 0
        assert "alignment" not in segment
        client.finish()
        assert client.ended() == (1000, "the translation is complete")
        assert not client.errors


def test_a_word_is_late_from_when_it_came_on(server: Running) -> None:
    """Not from when the server got round to it: the last sentence of a paste came with the first, and waited."""
    with Client(server.live, policies=["wait-k:1"]) as client:
        client.text("Ein Mann schläft. " * 20)
        client.text("Ein ")
        client.text("Hund. ")
        *pasted, typed = [event for event in client.finish() if event["type"] == "segment"]
    assert all(segment["read_times"] == [0, 0, 0] for segment in pasted)
    assert all(segment["latency"].get("AL_CA") is None for segment in pasted), "nobody has spoken"
    first = [segment["write_times"][0] for segment in pasted]
    assert first == sorted(first)
    assert first[-1] > pasted[0]["write_times"][-1], "the last sentence came with the first"
    assert len(typed["read_times"]) == 2


@pytest.mark.parametrize("seed", range(4))
def test_words_are_those_of_a_session_alone(server: Running, seed: int) -> None:
    rng = random.Random(seed)
    policies = rng.sample(["wait-k:1", "wait-k:3", "full", "none", "wait-k:2,c=0.25", "wait-k:2,unit=piece"], 3)
    segment = bool(seed % 2)
    with Client(server.live, policies=policies, segment=segment) as client:
        for chunk in chunks(TEXT, rng):
            client.text(chunk)
        events = client.finish()
    for track, policy in enumerate(policies):
        words, sources = alone(server.models["de-en"], policy, TEXT, segment=segment)
        assert client.words(track) == words
        told = [event for event in events if event["type"] == "segment" and event["track"] == track]
        assert [tuple(event["source"]) for event in told] == sources
        assert [event["segment"] for event in told] == list(range(len(sources)))
        assert [word for event in told for word in event["target"]] == [text for text, _, _ in words]
    # The source was cut once, whoever listened.
    heard = [(event["segment"], event["text"]) for event in events if event["type"] == "heard"]
    assert heard == [(number, word) for number, source in enumerate(sources) for word in source]


def test_a_policy_changes_where_it_was_asked_to(server: Running) -> None:
    translator, words = server.models["de-en"], GERMAN[1].split()
    session = translator.stream("wait-k:5")
    expected = [word for source in words[:6] for word in session.read(source)]
    expected += session.change("wait-k:1")
    expected += [word for source in words[6:9] for word in session.read(source)]
    expected += session.change("full")
    expected += [word for source in words[9:] for word in session.read(source)] + session.close()
    with Client(server.live, policies=["full", "wait-k:5"], segment=False) as client:
        client.text(" ".join(words[:6]) + " ")
        client.send("policy", track=1, policy="wait-k:1")
        client.text(" ".join(words[6:9]) + " ")
        client.send("policy", track=1, policy="full")
        client.text(" ".join(words[9:]))
        events = client.finish()
    assert client.words(1) == [(word.text, word.delay, 0) for word in expected]
    assert client.words(0) == alone(translator, "full", GERMAN[1], segment=False)[0]
    changes = [event for event in events if event["type"] == "policy"]
    assert [(change["track"], change["policy"]) for change in changes] == [(1, "wait-k:1"), (1, "full")]
    heard_before = sum(event["type"] == "heard" for event in events[: changes[0]["n"]])
    assert heard_before == 6


def test_a_change_before_the_first_word_says_nothing(server: Running) -> None:
    with Client(server.live, policies=["wait-k:3"]) as client:
        client.send("policy", track=0, policy="none")
        client.send("end")
        assert [event["type"] for event in client.finish()] == ["policy", "closed"]


def test_an_end_finishes_the_word_that_is_open(server: Running) -> None:
    with Client(server.live, policies=["wait-k:1"], segment=False) as client:
        for line in GERMAN[:2]:
            client.text(line)
            client.send("end")
        events = client.finish()
    told = [" ".join(event["source"]) for event in events if event["type"] == "segment"]
    assert told == GERMAN[:2]


def test_a_word_is_heard_at_once(server: Running) -> None:
    """A typist's word comes back when its space is typed, not when the next one is."""
    with Client(server.live, policies=["wait-k:1"]) as client:
        for word in ["Der", "Hund", "kam", "um", "3.", "Er", "bellt."]:
            client.text(f"{word} ")
            assert client.until("heard")["text"] == word


def test_chinese(server: Running) -> None:
    text = "我们在学习机器翻译。今天天气很好，我们去公园。"
    with Client(server.live, model="zh-en", policies=["wait-k:2"]) as client:
        for character in text:
            client.text(character)
        client.finish()
    assert client.words() == alone(server.models["zh-en"], "wait-k:2", text)[0]


def test_halves_of_a_character(server: Running) -> None:
    """JavaScript may cut a string inside a character."""
    with Client(server.live) as client:
        for half in ("Ein \ud83d", "\ude00 hier \ud83d", " \ude00x"):
            client.text(half)
        events = client.finish()
    heard = [event["text"] for event in events if event["type"] == "heard"]
    assert heard == ["Ein", "😀", "hier", "\ufffd", "\ufffdx"]


def test_alignments_come_behind_the_words(server: Running) -> None:
    from stacl.live.align import alignment
    from stacl.support.stepwise import run

    with Client(server.live, policies=["wait-k:1", "wait-k:3"], align=True) as client:
        client.text(" ".join(GERMAN))
        events = client.finish()
    told = [event for event in events if event["type"] == "segment"]
    assert len(told) == 2 * len(GERMAN)
    for event in told:
        expected = run(alignment(server.models["de-en"], event["source"], event["target"]))
        assert event["alignment"] == list(expected)
        # Whoever is told of a finished sentence has been told all of it.
        before = events[: events.index(event)]
        same = [other for other in before if other.get("segment") == event["segment"]]
        assert [other["text"] for other in same if other["type"] == "heard"] == event["source"]
        spoken = [other["text"] for other in same if other["type"] == "word" and other["track"] == event["track"]]
        assert spoken == event["target"]
    assert events[-1]["type"] == "closed"
    words, _ = alone(server.models["de-en"], "wait-k:3", " ".join(GERMAN))
    assert client.words(1) == words


def test_a_sentence_without_end_is_ended(models: dict[str, Translator]) -> None:
    with serving(models, sentence_words=20) as running, Client(running.live, segment=False) as client:
        client.text("Hund " * 50)
        events = client.finish()
    assert [len(event["source"]) for event in events if event["type"] == "segment"] == [20, 20, 10]


def test_a_sentence_of_odd_signs_is_not_aligned(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand pieces a word: what the alignment of so few words takes would fill the memory."""
    monkeypatch.setattr(aligner, "_CELLS", 5_000)
    with Client(server.live, policies=["wait-k:1"], align=True, segment=False) as client:
        client.text(" ".join("x" + "🦀" * 200 for _ in range(3)))
        events = client.finish()
    (segment,) = [event for event in events if event["type"] == "segment"]
    assert segment["target"]
    assert set(segment["alignment"]) == {None}


def test_a_long_message_is_the_same_as_many_short_ones(server: Running) -> None:
    text = (" " * 500).join(" ".join(GERMAN * 2).split())
    assert 50_000 < len(text) < server.hub.limits.message_bytes
    with Client(server.live, policies=["wait-k:1"]) as client:
        client.text(text)
        client.finish()
    assert client.words() == alone(server.models["de-en"], "wait-k:1", text)[0]
