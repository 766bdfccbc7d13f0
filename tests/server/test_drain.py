"""The end of a session, or of the server: nothing is lost without a word, and nobody waits for alignments."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from stacl.live.translator import Translator
from stacl.server.aligner import Aligner, Finished
from stacl.server.worker import Scheduler
from stacl.traces.trace import Trace
from tests.helpers import GERMAN, random_translator
from tests.server.client import Client, alone
from tests.server.conftest import serving

POLICIES = ["wait-k:1", "full"]


@pytest.fixture
def never_aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    """An alignment takes longer than any test."""

    def endless(self: Any, trace: Trace) -> Iterator[None]:
        while True:
            time.sleep(0.001)
            yield

    monkeypatch.setattr(Aligner, "_alignment", endless)


def without_alignments(events: list[dict[str, Any]]) -> set[tuple[object, object]]:
    """Which sentences of which tracks were told to be complete, each once and with an alignment that nobody made."""
    told = [event for event in events if event["type"] == "segment"]
    assert all(event["alignment"] == [None] * len(event["target"]) for event in told)
    found = {(event["track"], event["segment"]) for event in told}
    assert len(found) == len(told)
    return found


def test_what_comes_after_the_last_call_is_said_again_elsewhere(models: dict[str, Translator]) -> None:
    with serving(models) as running, Client(running.live, policies=["wait-k:1"]) as client:
        client.text("Ein ")
        client.until("word")
        running.hub.stopping = True  # the connection waits for its client's next message already
        client.text("Mann ")
        time.sleep(0.2)
        running.server.should_exit = True
        assert client.ended() == (1001, "shutdown")
        assert client.errors[-1]["accepted"] == 1
        assert [event["text"] for event in client.events if event["type"] == "heard"] == ["Ein"]


def test_the_end_of_the_server_does_not_wait_for_alignments(models: dict[str, Translator], never_aligned: None) -> None:
    text = "\n".join(GERMAN[:3]) + "\n"
    with serving(models, drain_seconds=60) as running, Client(running.live, policies=POLICIES, align=True) as client:
        client.text(text)
        client.text("Ein Hund ")
        while len(client.words(1)) < len(alone(models["de-en"], "full", text)[0]):
            client.answer()
        running.server.should_exit = True
        assert client.ended() == (1001, "shutdown")  # long before drain_seconds: nobody here is so patient
        assert "all pending output was sent" in client.errors[-1]["message"]
        assert without_alignments(client.events) == {(track, segment) for track in range(2) for segment in range(4)}


def test_who_closes_does_not_wait_long_for_alignments(models: dict[str, Translator], never_aligned: None) -> None:
    with serving(models, align_seconds=0.2) as running, Client(running.live, policies=POLICIES, align=True) as client:
        client.text("\n".join(GERMAN[:3]))
        events = client.finish()
        assert events[-1]["type"] == "closed"
        assert without_alignments(events) == {(track, segment) for track in range(2) for segment in range(3)}


def test_a_sentence_is_told_once_though_its_alignment_had_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    translator, scheduler = random_translator(), Scheduler(1, "test")
    monkeypatch.setattr(scheduler, "wake", lambda job: None)  # whose turns we give ourselves
    trace = translator.translate_lines([GERMAN[0]], "wait-k:1")[0]
    job = Aligner(translator, scheduler, told.append, lambda: None)
    for number in range(2):
        job.add(Finished({"track": 0, "segment": number}, trace))
    job.words_delivered()
    for _ in range(3):
        assert job.turn(0.0)
    steps = job._steps
    job.hurry()
    job.words_delivered()
    assert not job.pending
    for _ in steps:  # a thread that is at it meanwhile
        pass
    assert not job.turn(0.0)
    assert without_alignments([json.loads(event.text(1, 0.0)) for event in told]) == {(0, 0), (0, 1)}
    scheduler.close()
