"""Fair shares of the processor: jobs take turns of a few milliseconds on a few threads, and report to the loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from stacl.server import journal

TURN = 0.004  # seconds after which a job makes room, at its next step
_PATIENCE = 10 * TURN  # for which those behind others let them go first: they still get a tenth of the time
_LAST_TURN = 2.0  # seconds that a turn may take which has begun when the end comes


class Job(Protocol):
    def turn(self, until: float) -> bool:
        """Work until about then, by the clock time.perf_counter; whether there is more to do at once."""


class Scheduler:
    """A job is worked on by one thread at a time; ready ones wait in line, and go to its end after a turn.

    One that is `behind` others gives way to them.
    """

    def __init__(self, threads: int, name: str, behind: Sequence[Scheduler] = ()) -> None:
        self._behind = behind
        self._changed = threading.Condition()
        self._ready: deque[Job] = deque()
        self._woken: dict[Job, bool] = {}  # jobs in line or at work; True: there is news for one at work
        self._closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"{name} {number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def wake(self, job: Job) -> None:
        """There is something to do for this job. May be called from any thread, as often as one likes."""
        with self._changed:
            if job in self._woken:
                self._woken[job] = True
                return
            self._woken[job] = False
            self._ready.append(job)
            self._changed.notify()

    @property
    def waiting(self) -> int:
        """Jobs in line."""
        return len(self._ready)

    @property
    def busy(self) -> bool:
        return bool(self._woken)

    def close(self) -> None:
        """Finish the turns that have begun, and no more. One that takes too long is left behind: it has nobody to tell,
        and ends with the process.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(_LAST_TURN)

    def _run(self) -> None:
        while (job := self._next()) is not None:
            self._give_way()
            try:
                more = job.turn(time.perf_counter() + TURN)
            except Exception as error:  # a job answers for its own errors; the thread must go on in any case
                journal.failed("a job", error)
                more = False
            with self._changed:
                if more or self._woken[job]:
                    self._ready.append(job)
                    self._changed.notify()
                else:
                    del self._woken[job]
            del job  # a thread without work must not keep a session that has ended

    def _give_way(self) -> None:
        until = time.perf_counter() + _PATIENCE
        while any(other.busy for other in self._behind) and time.perf_counter() < until and not self._closed:
            time.sleep(TURN / 4)

    def _next(self) -> Job | None:
        with self._changed:
            while not self._ready and not self._closed:
                self._changed.wait()
            if self._closed:
                return None
            job = self._ready.popleft()
            self._woken[job] = False
            return job


class Mailbox:
    """From the threads that compute to the event loop, which is woken once for all that comes meanwhile."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._letters: deque[Callable[[], None]] = deque()
        self._told = False

    def post(self, letter: Callable[[], None]) -> None:
        """Have this called in the event loop, in the order of posting. From any thread."""
        self._letters.append(letter)
        if not self._told:
            self._told = True
            self._loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._told = False  # first: what is posted from here on needs a call of its own
        for _ in range(len(self._letters)):
            self._letters.popleft()()
