"""Nobody waits long because somebody else has much to say."""

from __future__ import annotations

import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from stacl.server.worker import Scheduler
from tests.helpers import GERMAN
from tests.server.client import Client, alone
from tests.server.conftest import serving


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


def wait_for(condition) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture
def scheduler():
    found = Scheduler(2, "test")
    yield found
    found.close()


def test_short_jobs_pass_long_ones(scheduler):
    done: list[Work] = []
    long = [Work(300, done) for _ in range(4)]
    short = [Work(1, done) for _ in range(10)]
    for job in [*long, *short]:
        scheduler.wake(job)
    wait_for(lambda: len(done) == 14)
    assert set(done[:10]) == set(short)
    assert all(job.turns > 10 for job in long)


def test_a_wake_up_during_work_is_not_forgotten(scheduler):
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


def test_a_job_that_fails_stops_nobody(scheduler, caplog):
    done: list[Work] = []
    for _ in range(4):
        scheduler.wake(Work(1, done, fails=True))
    scheduler.wake(Work(1, done))
    wait_for(lambda: len(done) == 5)
    assert "RuntimeError at" in caplog.text
    assert "no good" not in caplog.text  # what a message says may be a user's word


def delays(client: Client, rounds: int) -> list[float]:
    """Seconds from sending a word to hearing its translation, again and again."""
    found = []
    for number in range(rounds):
        words = GERMAN[number % len(GERMAN)].split()[:-1]
        for place, word in enumerate(words, start=1):
            began = time.perf_counter()
            client.text(f"{word} ")
            client.until(lambda event, place=place: event["type"] == "word" and event["delay"] == place)
            found.append(time.perf_counter() - began)
        client.send("end")
        client.until("segment")
    return found


def test_a_paste_of_ten_thousand_words_does_not_hold_up_others(models):
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


def test_sessions_at_once_say_what_they_say_alone(server):
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


def test_words_do_not_wait_for_alignments(models):
    """The thread behind the words has other things to do: sentences go without their alignments, words as ever."""
    blocked = threading.Event()

    class Long:
        def turn(self, until: float) -> bool:
            blocked.wait(20)
            return False

    with serving(models) as running:
        running.hub.background.wake(Long())
        policies = ["wait-k:1", "wait-k:2", "wait-k:3", "full"]
        text = " ".join(GERMAN[:3]) + "\n"
        with Client(running.live, policies=policies, align=True) as client:
            for _ in range(5):  # 15 sentences on 4 tracks: more than may wait
                client.text(text)
            wanted = alone(models["de-en"], "full", text * 5)[0]
            while len(client.words(3)) < len(wanted):
                client.answer()
            assert client.words(3) == wanted
            blocked.set()
            events = client.finish()
    done = [event for event in events if event["type"] == "segment"]
    assert len(done) == len({(event["track"], event["segment"]) for event in done}) == 4 * 15
    assert any(not any(event["alignment"]) for event in done)
