"""A fair scheduler: jobs take turns of a few milliseconds on worker threads and post results to the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from stacl.server import journal

TURN = 0.004  # seconds of a turn; a job yields at its next step after that
_LONGEST_DELAY = 10 * TURN  # of a low-priority turn, which still gets about a tenth of the time
_LAST_TURN = 2.0  # seconds that `close` waits for a running turn


class Job(Protocol):
    def turn(self, until: float) -> bool:
        """Work until about `until` (time.perf_counter). Return whether there is more to do at once."""


class Scheduler:
    """Round-robin: a job runs on one thread at a time and goes to the end of the queue after its turn.

    A scheduler delays its turns while those in `behind` are busy.
    """

    def __init__(self, threads: int, name: str, behind: Sequence[Scheduler] = ()) -> None:
        self._behind = behind
        self._changed = threading.Condition()
        self._ready: deque[Job] = deque()
        self._woken: dict[Job, bool] = {}  # queued or running jobs; True: woken again while running
        self._closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"{name} {number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def wake(self, job: Job) -> None:
        """Queue this job if it is not queued. May be called from any thread."""
        with self._changed:
            if job in self._woken:
                self._woken[job] = True
                return
            self._woken[job] = False
            self._ready.append(job)
            self._changed.notify()

    @property
    def waiting(self) -> int:
        """The number of queued jobs."""
        return len(self._ready)

    @property
    def busy(self) -> bool:
        return bool(self._woken)

    def close(self) -> None:
        """Stop after the running turns. A turn that takes too long is abandoned: the threads are daemons."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(_LAST_TURN)

    def _run(self) -> None:
        while (job := self._next()) is not None:
            self._yield_to_others()
            try:
                more = job.turn(time.perf_counter() + TURN)
            except Exception as error:  # jobs handle their own errors; the thread must survive in any case
                journal.failed("a job", error)
                more = False
            with self._changed:
                if more or self._woken[job]:
                    self._ready.append(job)
                    self._changed.notify()
                else:
                    del self._woken[job]
            del job  # an idle thread must not keep an ended session in memory

    def _yield_to_others(self) -> None:
        until = time.perf_counter() + _LONGEST_DELAY
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
    """Passes calls from the worker threads to the event loop, which is woken once for many calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[Callable[[], None]] = deque()
        self._woken = False

    def post(self, call: Callable[[], None]) -> None:
        """Call this in the event loop, in the order of posting. May be called from any thread."""
        self._calls.append(call)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._woken = False  # first: calls posted from now on need a new wake-up
        for _ in range(len(self._calls)):
            self._calls.popleft()()
