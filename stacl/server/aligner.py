"""Word alignments, computed with low priority: they take far longer than words, and must not delay them."""

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

_AHEAD = 32  # queued sentences of a session; further ones are sent without an alignment
_LONGEST = 100  # words: the work grows with the square of a sentence's length
_CELLS = 20_000  # source pieces times target words: memory grows with it, and one word may have a thousand pieces


class Finished(NamedTuple):
    """A completed sentence."""

    place: dict[str, Any]  # its track and number
    trace: Trace


class Aligner:
    """Aligns the completed sentences of one session: a job of the low-priority scheduler.

    `publish` receives the event of a sentence. `wake_worker` is called after each sentence.
    """

    def __init__(
        self,
        translator: Translator,
        scheduler: Scheduler,
        publish: Callable[[Event], None],
        wake_worker: Callable[[], None],
    ) -> None:
        self._translator, self._scheduler = translator, scheduler
        self._publish, self._wake_worker = publish, wake_worker
        self._undelivered: deque[Finished] = deque()  # sentences whose words were not delivered yet
        self._queue: deque[Finished] = deque()
        self._steps: Iterator[None] = iter(())  # of the first sentence in the queue
        self._changing = threading.Lock()  # guards the queues: each sentence is sent once
        self._hurried = False
        self.added = 0  # sentences so far

    def add(self, finished: Finished) -> None:
        self.added += 1
        self._undelivered.append(finished)

    def words_delivered(self) -> None:
        """Called when the words of all sentences so far were delivered. Their alignments may follow."""
        with self._changing:
            self._queue.extend(self._undelivered)  # before `clear`: `pending` must never miss them
            self._undelivered.clear()
            queued = bool(self._queue)
            while self._hurried and self._queue:
                self._publish(without_alignment(self._queue[0]))
                self._queue.popleft()
        if queued and self._hurried:
            self._wake_worker()
        elif queued:
            self._scheduler.wake(self)

    def hurry(self) -> None:
        """Send all sentences without alignments from now on, queued ones at once."""
        self._hurried = True
        self._wake_worker()

    @property
    def pending(self) -> bool:
        return bool(self._undelivered or self._queue)

    @property
    def busy(self) -> bool:
        """Whether the queue is full: the next sentence should be sent without an alignment."""
        return self._hurried or len(self._undelivered) + len(self._queue) >= _AHEAD

    def cancel(self) -> None:
        with self._changing:
            self._undelivered.clear()
            self._queue.clear()

    def turn(self, until: float) -> bool:
        if not self._queue:  # all were sent or cancelled
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
            if not self._queue or self._queue[0] is not finished:  # sent without an alignment, or cancelled meanwhile
                return
            # Publish first, then remove: an empty queue means that all were sent.
            self._publish(event)
            self._queue.popleft()
        self._wake_worker()

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
    """The event of a sentence without an alignment."""
    return _segment(finished, (None,) * len(finished.trace.target))


def _segment(finished: Finished, alignment: tuple[int | None, ...]) -> Event:
    return Event.of("segment", finished.place | segment_members(finished.trace) | {"alignment": alignment})
