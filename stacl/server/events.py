"""The numbered messages of a session. The latest are kept for a client that resumes."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple

from stacl.metrics import latency
from stacl.server.limits import Limits
from stacl.server.protocol import Refusal
from stacl.traces.trace import Trace


class Event(NamedTuple):
    """A message to the client, without its number."""

    kind: str
    body: str  # the other members of the JSON object, each after a comma
    arrived: float | None = None  # for a word: when the message that allowed it arrived

    @classmethod
    def of(cls, kind: str, members: dict[str, Any], arrived: float | None = None) -> Event:
        return cls(kind, f", {json.dumps(members)[1:-1]}" if members else "", arrived)

    def text(self, number: int, now: float) -> str:
        waited = "" if self.arrived is None else f', "waited": {now - self.arrived:.4f}'
        return f'{{"type": "{self.kind}", "n": {number}{self.body}{waited}}}'


def segment_members(trace: Trace) -> dict[str, Any]:
    """The fields of a completed sentence."""
    return {
        "policy": trace.policy,
        "source": trace.source,
        "target": trace.target,
        "delays": trace.delays,
        "read_times": [round(time, 4) for time in trace.read_times],
        "write_times": [round(time, 4) for time in trace.write_times],
        "latency": {name: _number(value) for name, value in latency(trace).items()},
    }


def _number(value: float | None) -> float | None:
    """Rounded; None for infinity, which JSON does not have."""
    return round(value, 4) if value is not None and math.isfinite(value) else None


class EventLog:
    """The latest events of a session, numbered from 1. Unsent events are never dropped."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._kept: deque[Event] = deque()
        self._size = 0
        self.last = 0  # the number of the newest event
        self.sent = 0  # the number of the last event sent
        self.farthest = 0  # the highest number ever sent; up to it, events are sent again after a rewind

    def extend(self, events: Iterable[Event]) -> None:
        for event in events:
            self._kept.append(event)
            self._size += len(event.body)
            self.last += 1
        while self.first <= self.sent and self._too_many():
            self._drop()

    @property
    def first(self) -> int:
        """The number of the oldest kept event."""
        return self.last - len(self._kept) + 1

    @property
    def unsent(self) -> int:
        return self.last - self.sent

    def next(self) -> tuple[int, Event]:
        """The next event to send, and its number."""
        number = self.sent + 1
        self.farthest = max(self.farthest, number)
        return number, self._kept[number - self.first]

    def rewind(self, received: int) -> None:
        """Send the events after number `received` again."""
        if received > self.sent:
            raise Refusal("bad-message", f"received is {received}, but only {self.sent} messages were sent")
        if received < self.first - 1:
            raise Refusal(
                "lost", f"resume needs messages from {received + 1} on, but only those from {self.first} on are kept"
            )
        while self.first <= received:
            self._drop()
        self.sent = received

    def _too_many(self) -> bool:
        return len(self._kept) > self._limits.kept_events or self._size > self._limits.kept_bytes

    def _drop(self) -> None:
        self._size -= len(self._kept.popleft().body)
