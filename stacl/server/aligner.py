"""Alignments, which take far longer than words: computed behind the words, and nobody waits for them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from stacl.server import journal
from stacl.server.events import Event, segment_members
from stacl.server.worker import Scheduler
from stacl.traces.trace import Trace

if TYPE_CHECKING:
    from stacl.live.translator import Translator

_AHEAD = 32  # sentences of a session's tracks that wait; more go without
_LONGEST = 100  # words: the work grows with the square of a sentence's length
_CELLS = 20_000  # pieces heard times words said: the memory grows with it, and a word may be a thousand pieces


class Finished(NamedTuple):
    """A sentence that was said to its end."""

    place: dict[str, Any]  # its track and number
    trace: Trace


class Aligner:
    """The finished sentences of one session, on their way to being told: a job of a scheduler behind all others.

    `tell` takes the event of a sentence; `go_on` wakes who calls `words_told`, and is called when there is one sentence
    less to wait for.
    """

    def __init__(
        self,
        translator: Translator,
        scheduler: Scheduler,
        tell: Callable[[Event], None],
        go_on: Callable[[], None],
    ) -> None:
        self._translator, self._scheduler = translator, scheduler
        self._tell, self._go_on = tell, go_on
        self._coming: deque[Finished] = deque()  # whose words were not told yet
        self._queue: deque[Finished] = deque()
        self._steps: Iterator[None] = iter(())  # of the first in the queue
        self._changing = threading.Lock()  # of the queues: each sentence is told once
        self._hurried = False
        self.taken = 0  # sentences that were ever added

    def add(self, finished: Finished) -> None:
        self.taken += 1
        self._coming.append(finished)

    def words_told(self) -> None:
        """The words of all sentences so far are on their way to the client: their alignments may follow."""
        with self._changing:
            self._queue.extend(self._coming)  # before they leave the other: at no moment are they nowhere
            self._coming.clear()
            queued = bool(self._queue)
            while self._hurried and self._queue:
                self._tell(without_alignment(self._queue[0]))
                self._queue.popleft()
        if queued and self._hurried:
            self._go_on()
        elif queued:
            self._scheduler.wake(self)

    def hurry(self) -> None:
        """Nobody has the time to wait: from now on sentences go without, those in the queue at once."""
        self._hurried = True
        self._go_on()

    @property
    def pending(self) -> bool:
        return bool(self._coming or self._queue)

    @property
    def busy(self) -> bool:
        """Whether so many sentences wait already that one more would come too late to be of use."""
        return self._hurried or len(self._coming) + len(self._queue) >= _AHEAD

    def cancel(self) -> None:
        with self._changing:
            self._coming.clear()
            self._queue.clear()

    def turn(self, until: float) -> bool:
        if not self._queue:  # all was told, or cancelled
            self._steps = iter(())
            return False
        for _ in self._steps:
            if time.perf_counter() >= until:
                return True
        with self._changing:
            self._steps = self._align(self._queue[0]) if self._queue else iter(())
        return True

    def _align(self, finished: Finished) -> Iterator[None]:
        alignment = yield from self._alignment(finished.trace)
        event = _segment(finished, alignment)
        with self._changing:
            if not self._queue or self._queue[0] is not finished:  # told without, or cancelled meanwhile
                return
            # Told before it leaves the queue: who finds the queue empty may say that all was told.
            self._tell(event)
            self._queue.popleft()
        self._go_on()

    def _alignment(self, trace: Trace) -> Generator[None, None, tuple[int | None, ...]]:
        from stacl.live.align import alignment

        unknown = (None,) * len(trace.target)
        pieces = len(self._translator.source_pieces.encode(trace.source))
        if max(len(trace.source), len(trace.target)) > _LONGEST or pieces * len(trace.target) > _CELLS:
            return unknown
        try:
            return (yield from alignment(self._translator, trace.source, trace.target))
        except Exception as error:
            journal.failed("an alignment", error)
            return unknown


def without_alignment(finished: Finished) -> Event:
    """What is told of a sentence whose alignment nobody waits for."""
    return _segment(finished, (None,) * len(finished.trace.target))


def _segment(finished: Finished, alignment: tuple[int | None, ...]) -> Event:
    return Event.of("segment", finished.place | segment_members(finished.trace) | {"alignment": alignment})
