"""Nobody waits long because somebody else has much to say."""

from __future__ import annotations

import asyncio
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from stacl.decoding.options import Decoding
from stacl.live.align import alignment
from stacl.live.translator import Translator
from stacl.policies.base import policy
from stacl.server import aligner, worker
from stacl.server.aligner import Aligner, Finished
from stacl.server.oneshot import Translation
from stacl.server.worker import Scheduler
from stacl.support.stepwise import run
from tests.helpers import GERMAN, random_translator
from tests.server.client import Client, alone
from tests.server.conftest import Running, serving


class Work:
    """So many steps of a millisecond."""

    def __init__(self, steps: int, done: list[Work], *, fails: bool = False) -> None:
        self.left, self.turns, self.done, self.fails = steps, 0, done, fails
        self.at_work = threading.Lock()

    def turn(self, until: float) -> bool:
        assert self.at_work.acquire(blocking=False), "two threads at one job"
        self.turns += 1
        while self.left and time.perf_counter() < until:
            time.sleep(0.001)
            self.left -= 1
        self.at_work.release()
        if not self.left:
            self.done.append(self)
        if self.fails:
            raise RuntimeError("no good")
        return self.left > 0


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    found = Scheduler(2, "test")
    yield found
    found.close()


def test_short_jobs_pass_long_ones(scheduler: Scheduler) -> None:
    done: list[Work] = []
    long = [Work(300, done) for _ in range(4)]
    short = [Work(1, done) for _ in range(10)]
    for job in [*long, *short]:
        scheduler.wake(job)
    wait_for(lambda: len(done) == 14)
    assert set(done[:10]) == set(short)
    assert all(job.turns > 10 for job in long)


def test_a_wake_up_during_work_is_not_forgotten(scheduler: Scheduler) -> None:
    """The news comes while the job is at work and has already decided that there is no more to do."""

    class AtWork:
        turns = 0

        def turn(self, until: float) -> bool:
            self.turns += 1
            if self.turns == 1:
                scheduler.wake(self)
            return False

    job = AtWork()
    scheduler.wake(job)
    wait_for(lambda: job.turns == 2)


def test_a_job_that_fails_stops_nobody(scheduler: Scheduler, caplog: pytest.LogCaptureFixture) -> None:
    done: list[Work] = []
    for _ in range(4):
        scheduler.wake(Work(1, done, fails=True))
    scheduler.wake(Work(1, done))
    wait_for(lambda: len(done) == 5)
    assert "RuntimeError at" in caplog.text
    assert "no good" not in caplog.text  # what a message says may be a user's word


class Held:
    """Does not end its turn before it may."""

    def __init__(self) -> None:
        self.may, self.begun, self.done = threading.Event(), threading.Event(), threading.Event()

    def turn(self, until: float) -> bool:
        self.begun.set()
        self.may.wait(20)
        self.done.set()
        return False


def test_an_end_does_not_wait_for_a_turn_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_LAST_TURN", 0.05)
    found, job = Scheduler(1, "test"), Held()
    found.wake(job)
    job.begun.wait()
    found.close()
    assert not job.done.is_set()
    job.may.set()


def test_who_is_behind_others_gives_way(scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_LONGEST_DELAY", 1000.0)
    behind, job, first = Scheduler(1, "behind", behind=(scheduler,)), Held(), Held()
    scheduler.wake(first)
    first.begun.wait()
    behind.wake(job)
    assert not job.begun.wait(0.1)
    first.may.set()
    job.begun.wait()
    job.may.set()
    behind.close()


def test_who_is_behind_others_gets_a_share(scheduler: Scheduler) -> None:
    behind, job, first = Scheduler(1, "behind", behind=(scheduler,)), Held(), Held()
    scheduler.wake(first)
    first.begun.wait()
    behind.wake(job)
    assert job.begun.wait(20)
    assert not first.done.is_set()
    job.may.set()
    first.may.set()
    behind.close()


def delays(client: Client, rounds: int) -> list[float]:
    """Seconds from sending a word to hearing its translation, again and again."""
    found = []
    for number in range(rounds):
        words = GERMAN[number % len(GERMAN)].split()[:-1]
        for place, word in enumerate(words, start=1):
            began = time.perf_counter()
            client.text(f"{word} ")
            client.until(lambda event, at=place: event["type"] == "word" and event["delay"] == at)  # type: ignore[misc]
            found.append(time.perf_counter() - began)
        client.send("end")
        client.until("segment")
    return found


def test_a_paste_of_ten_thousand_words_does_not_hold_up_others(models: dict[str, Translator]) -> None:
    paste = " ".join(["Hund"] * 9 + ["bellt."])
    with (
        serving(models) as running,
        ThreadPoolExecutor() as beside,
        Client(running.live, policies=["wait-k:1"], segment=False) as typist,
    ):
        quiet = delays(typist, 4)
        with Client(running.live, policies=["wait-k:1", "wait-k:3", "full"]) as hurried:
            hurried.text(" ".join([paste] * 1000))
            pump = beside.submit(hurried.until, lambda event: event.get("segment", 0) > 40)
            hurried_so_far = len(hurried.events)
            busy = delays(typist, 4)
            assert running.hub.workers._woken, "the paste was over before the typist was"
            assert len(hurried.events) > hurried_so_far, "the paste was not worked on meanwhile"
            pump.result(60)
    # Two turns of others, and what a busy machine adds; without turns it would be the half minute that a paste takes.
    assert statistics.median(busy) < statistics.median(quiet) + 0.25
    assert max(busy) < max(quiet) + 0.5


def test_sessions_at_once_say_what_they_say_alone(server: Running) -> None:
    """Many at the same time, each in a thread, with different texts and policies."""

    def speak(number: int) -> bool:
        policy = f"wait-k:{1 + number % 4}"
        text = " ".join(GERMAN[number % 6 :] + GERMAN[: number % 6])
        with Client(server.live, policies=[policy]) as client:
            for word in text.split():
                client.text(f"{word} ")
            client.finish()
        return client.words() == alone(server.models["de-en"], policy, text)[0]

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(speak, range(16), timeout=60))


def test_words_do_not_wait_for_alignments(models: dict[str, Translator]) -> None:
    """The thread behind the words has other things to do: sentences go without their alignments, words as ever."""
    long = Held()
    with serving(models) as running:
        running.hub.alignments.wake(long)
        policies = ["wait-k:1", "wait-k:2", "wait-k:3", "full"]
        text = " ".join(GERMAN[:3]) + "\n"
        with Client(running.live, policies=policies, align=True) as client:
            for _ in range(5):  # 15 sentences on 4 tracks: more than may wait
                client.text(text)
            wanted = alone(models["de-en"], "full", text * 5)[0]
            while len(client.words(3)) < len(wanted):
                client.answer()
            assert client.words(3) == wanted
            long.may.set()
            events = client.finish()
    done = [event for event in events if event["type"] == "segment"]
    assert len(done) == len({(event["track"], event["segment"]) for event in done}) == 4 * 15
    assert any(not any(event["alignment"]) for event in done)


def test_whole_texts_do_not_wait_for_alignments(models: dict[str, Translator], monkeypatch: pytest.MonkeyPatch) -> None:
    members, aligned = aligner.segment_members, Held()  # type: ignore[attr-defined]

    def held(trace: Any) -> Any:
        aligned.turn(0.0)
        return members(trace)

    monkeypatch.setattr(aligner, "segment_members", held)
    with serving(models) as running, Client(running.live, align=True) as client:
        client.text(f"{GERMAN[0]}\n")
        aligned.begun.wait()
        assert httpx.post(f"{running.url}/translate", json={"text": GERMAN[0]}, timeout=60).status_code == 200
        assert not aligned.done.is_set()
        aligned.may.set()
        client.until("segment")


def test_a_short_text_passes_one_long_sentence(models: dict[str, Translator], monkeypatch: pytest.MonkeyPatch) -> None:
    """A beam searches for seconds where the sentence has hundreds of words; the short text comes in the middle."""
    translator, turns = models["de-en"], []
    write = translator.engine.write

    def job(name: str, text: str) -> Translation:
        full = policy("full").decoding_policy()
        made = Translation(translator, full, text, decoding=Decoding(beam=8), segment=False, longest=400)
        turn = made.turn
        monkeypatch.setattr(made, "turn", lambda until: turns.append(name) or turn(until))
        return made

    async def both() -> int:
        line, long, short = Scheduler(1, "test"), job("long", "Ein Hund springt " * 100), job("short", "Hund")
        last = 0  # turn in which the long one searched

        def searching(state: Any, previous: Any, *others: Any) -> Any:
            nonlocal last
            if len(previous) > 1 and turns[-1] == "long":
                line.wake(short)
                last = len(turns)
            return write(state, previous, *others)

        monkeypatch.setattr(translator.engine, "write", searching)
        line.wake(long)
        await asyncio.gather(long.result, short.result)
        line.close()
        return last

    last = asyncio.run(both())
    assert "short" in turns[:last]


@pytest.mark.parametrize("cancelled", [False, True])
def test_an_alignment_makes_room_for_others_after_each_piece(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    told: list[Any] = []
    translator, writes = random_translator(), [0]
    trace = translator.translate_lines([GERMAN[0]], "wait-k:1")[0]
    expected = run(alignment(translator, trace.source, trace.target))
    write = translator.engine.write

    def counted(*arguments: Any) -> Any:
        writes[-1] += 1
        return write(*arguments)

    monkeypatch.setattr(translator.engine, "write", counted)
    monkeypatch.setattr(scheduler, "wake", lambda job: None)  # whose turns we give ourselves
    job = Aligner(translator, scheduler, told.append, lambda: None)
    for number in range(2):
        job.add(Finished({"track": 0, "segment": number}, trace))
    job.words_delivered()
    while job.turn(0.0):  # its time is over as soon as it begins
        writes.append(0)
        if cancelled and len(writes) == 5:
            job.cancel()
    assert max(writes) == 1
    assert not job.pending
    found = [json.loads(event.text(1, 0.0))["alignment"] for event in told]
    assert found == ([] if cancelled else [list(expected)] * 2)
