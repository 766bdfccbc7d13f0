"""Alignments, which take far longer than words: computed behind the words, and nobody waits for them."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from stacl.server import journal
from stacl.server.events import Event, segment_members
from stacl.server.worker import Scheduler
from stacl.trace import Trace

if TYPE_CHECKING:
    from stacl.api import Translator

_AHEAD = 32  # sentences of a session's tracks that wait; more go without
_LONGEST = 100  # words: the work grows with the square of a sentence's length
_CELLS = 20_000  # pieces heard times words said: the memory grows with it, and a word may be a thousand pieces


class Finished(NamedTuple):
    """A sentence that was said to its end."""

    place: dict[str, Any]  # its track and number
    trace: Trace


class Aligner:
    """The finished sentences of one session, on their way to being told: a job of a scheduler behind all others.

    `tell` takes the event of a sentence; `go_on` is called when there is one sentence less to wait for.
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

    def add(self, finished: Finished) -> None:
        self._coming.append(finished)

    def words_told(self) -> None:
        """The words of all sentences so far are on their way to the client: their alignments may follow."""
        with contextlib.suppress(IndexError):  # cancelled meanwhile
            while self._coming:
                self._queue.append(self._coming[0])
                self._coming.popleft()  # after it was queued: at no moment is it nowhere
                self._scheduler.wake(self)

    @property
    def pending(self) -> bool:
        return bool(self._coming or self._queue)

    @property
    def busy(self) -> bool:
        """Whether so many sentences wait already that one more would come too late to be of use."""
        return len(self._coming) + len(self._queue) >= _AHEAD

    def cancel(self) -> None:
        self._coming.clear()
        self._queue.clear()

    def turn(self, until: float) -> bool:
        if not self._queue:  # all was told, or cancelled
            self._steps = iter(())
            return False
        for _ in self._steps:
            if time.perf_counter() >= until:
                return True
        with contextlib.suppress(IndexError):  # it was the last, or all was cancelled meanwhile
            self._steps = self._align(*self._queue[0])
        return True

    def _align(self, place: dict[str, Any], trace: Trace) -> Iterator[None]:
        alignment = yield from self._alignment(trace)
        # Told before it leaves the queue: who finds the queue empty may say that all was told.
        self._tell(Event.of("segment", place | segment_members(trace) | {"alignment": alignment}))
        with contextlib.suppress(IndexError):  # cancelled meanwhile
            self._queue.popleft()
        self._go_on()

    def _alignment(self, trace: Trace) -> Generator[None, None, tuple[int | None, ...]]:
        from stacl.align import alignment

        unknown = (None,) * len(trace.target)
        pieces = len(self._translator.source_pieces.encode(trace.source))
        if max(len(trace.source), len(trace.target)) > _LONGEST or pieces * len(trace.target) > _CELLS:
            return unknown
        try:
            return (yield from alignment(self._translator, trace.source, trace.target))
        except Exception as error:
            journal.failed("an alignment", error)
            return unknown
