"""The part of a session that computes, on the worker threads."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from stacl.server import journal
from stacl.server.events import Event
from stacl.server.protocol import Command, Refusal, Text
from stacl.server.tracks import Pause, Step, Tracks
from stacl.support.errors import UserError


class Order(NamedTuple):
    """A queued command."""

    command: Command
    arrived: float

    @property
    def size(self) -> int:
        """Its share of the queue, whose length is limited."""
        return 1 + (len(self.command.text) if isinstance(self.command, Text) else 0)


@dataclass
class TurnResult:
    """What one turn produced."""

    events: list[Event] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    done: int = 0  # the size of the orders that were finished
    aligned: int = 0  # sentences from the aligner

    def __bool__(self) -> bool:
        return bool(self.events or self.refusals or self.done)


class Interpreter:
    """A scheduler job. `add` may be called while `turn` runs; `turn` runs on one thread at a time."""

    def __init__(self, tracks: Tracks, deliver: Callable[[TurnResult], None]) -> None:
        self.blocked = False  # True: compute nothing until the client has read
        self._deliver = deliver
        self._orders: deque[Order] = deque()
        self._tracks: Tracks | None = tracks
        self._order: Order | None = None
        self._steps: Iterator[Step] = iter(())

    def add(self, order: Order) -> None:
        self._orders.append(order)

    def cancel(self) -> None:
        """Drop all work: the session has ended."""
        self._tracks = None

    def turn(self, until: float) -> bool:
        result, more = TurnResult(), True
        while more and not self.blocked and time.perf_counter() < until:
            try:
                more = self._step(result)
            except UserError as error:
                result.refusals.append(Refusal("bad-policy", str(error)))
                self._finish(result)
            except Exception as error:
                journal.failed("a session", error)
                result.refusals.append(Refusal("internal", "the server failed; start a new session", True))
                self.cancel()
        if result:
            self._deliver(result)
        tracks = self._tracks
        if tracks is not None:
            tracks.delivered()
        return more and not self.blocked

    def _step(self, result: TurnResult) -> bool:
        """Run one step. Return False if there is nothing to do for now."""
        tracks = self._tracks
        if tracks is None:
            self._orders.clear()
            self._order, self._steps = None, iter(())
            return False
        if self._order is None:
            if not self._orders:
                return False
            self._order = self._orders.popleft()
            self._steps = tracks.run(*self._order)
        step = next(self._steps, None)
        if step is None:
            self._finish(result)
        elif isinstance(step, Event):
            result.events.append(step)
        return step is not Pause.WAIT

    def _finish(self, result: TurnResult) -> None:
        assert self._order is not None
        result.done += self._order.size
        self._order, self._steps = None, iter(())
