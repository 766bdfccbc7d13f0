"""A session: the queue of commands and the log of events. It outlives the connection."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from stacl.server.aligner import Aligner
from stacl.server.events import Event, EventLog
from stacl.server.interpreter import Interpreter, Order, TurnResult
from stacl.server.protocol import Close, Command, End, PolicyChange, Refusal
from stacl.server.tracks import Tracks

if TYPE_CHECKING:
    from stacl.live.translator import Translator
    from stacl.policies.base import Policy
    from stacl.server.limits import Limits
    from stacl.server.metrics import Metrics
    from stacl.server.worker import Mailbox, Scheduler


class Listener(Protocol):
    """The current connection of a session."""

    def notify(self) -> None:
        """Called when there are events to send or room for more messages."""

    def refuse(self, refusal: Refusal) -> None:
        """Send this error. Close the connection if it is fatal."""

    def replaced(self) -> None:
        """Called when another connection has resumed the session."""


class LiveSession:
    """Takes commands and logs events, in the event loop. Its Interpreter computes on the worker threads."""

    def __init__(
        self,
        key: str,
        model: str,
        translator: Translator,
        policies: list[Policy],
        *,
        segment: bool,
        align: bool,
        limits: Limits,
        metrics: Metrics,
        mailbox: Mailbox,
        workers: Scheduler,
        alignments: Scheduler,
    ) -> None:
        self.key, self.model, self.translator = key, model, translator
        self.listener: Listener | None = None
        self.log = EventLog(limits)
        self.accepted = 0  # the number of the last client message that was accepted
        self.queued = 0  # the size of the commands that are not done yet
        self.finished = self.broken = False  # all output was produced; an internal error occurred
        self.last_active = self.disconnected_since = time.monotonic()  # last activity; when the connection was lost
        self._closing = self._wound_up = False
        self._last_word = 0.0  # when the last word was written, or `close` arrived; used only after `close`
        self._aligned = 0  # sentences from the aligner that are in the log
        self._limits, self._metrics, self._workers = limits, metrics, workers
        self._mailbox = mailbox
        self._aligner = Aligner(translator, alignments, self._publish, self._wake_worker) if align else None
        tracks = Tracks(translator, policies, segment=segment, longest=limits.sentence_words, aligner=self._aligner)
        self.policies = tracks.policies
        self._interpreter = Interpreter(tracks, self._post)

    def take(self, command: Command, arrived: float) -> None:
        """Queue a command."""
        if self._closing:
            raise Refusal("closing", "no messages are accepted after `close`; start a new session")
        if isinstance(command, PolicyChange) and not 0 <= command.track < len(self.policies):
            last = len(self.policies) - 1
            raise Refusal("bad-message", f"there is no track {command.track}; tracks are 0 to {last}")
        self._closing, self._wound_up = isinstance(command, Close), False
        self.last_active = self._last_word = time.monotonic()
        order = Order(command, arrived)
        self.queued += order.size
        self._interpreter.add(order)
        self._wake_worker()

    def wind_up(self) -> bool:
        """End an unfinished sentence on the first call. Return whether all output was sent."""
        if not (self._closing or self._wound_up):
            last_active = self.last_active
            self.take(End(), time.perf_counter())
            self.last_active, self._wound_up = last_active, True
            return False
        return self.all_sent

    def description(self) -> dict[str, Any]:
        """The fields of `started` and `resumed`."""
        return {
            "session": self.key,
            "model": self.model,
            "source": self.translator.source_language.code,
            "target": self.translator.target_language.code,
            "policies": self.policies,
            "limits": self._limits.for_clients(),
        }

    @property
    def full(self) -> bool:
        """Whether no more messages should be read for now."""
        return self.queued >= self._limits.queued_characters or self._interpreter.blocked

    @property
    def all_sent(self) -> bool:
        """Whether all output was produced and sent."""
        aligning = self._aligner is not None and self._aligner.added > self._aligned
        return not (self.queued or self.log.unsent or aligning)

    def hurry(self) -> None:
        """Stop waiting for alignments."""
        if self._aligner:
            self._aligner.hurry()

    def check(self, now: float) -> None:
        """Stop waiting for alignments `align_seconds` after the last word. Called periodically."""
        if self._closing and not self.finished and now - self._last_word > self._limits.align_seconds:
            self.hurry()

    def sent(self, number: int) -> None:
        """Called when an event was sent to the client."""
        self.log.sent = number
        if self._interpreter.blocked and self.log.unsent <= self._limits.unsent_events // 2:
            self._interpreter.blocked = False
            self._wake_worker()

    def rewind(self, received: int) -> None:
        """Continue after this event for a client that resumes."""
        self.log.rewind(received)
        self.last_active = time.monotonic()

    def release(self) -> None:
        """Stop computing and free the memory."""
        self._interpreter.cancel()
        if self._aligner:
            self._aligner.cancel()
        self._wake_worker()  # its next turn frees the memory

    def _deliver(self, result: TurnResult) -> None:
        if not self._wound_up:
            self.last_active = time.monotonic()
        self.queued -= result.done
        self._aligned += result.aligned
        self.log.extend(result.events)
        for kind, name in (("heard", "words_in"), ("word", "words_out")):
            count = sum(event.kind == kind for event in result.events)
            if count:
                self._metrics.add(name, count, model=self.model)
                self._last_word = time.monotonic()
        if self.log.unsent >= self._limits.unsent_events:
            self._interpreter.blocked = True
        self.finished = self.finished or any(event.kind == "closed" for event in result.events)
        self.broken = self.broken or any(refusal.fatal for refusal in result.refusals)
        if self.finished or self.broken:
            self.release()
        if self.listener:
            for refusal in result.refusals:
                self.listener.refuse(refusal)
            self.listener.notify()

    # Called on the worker threads

    def _post(self, result: TurnResult) -> None:
        self._mailbox.post(lambda: self._deliver(result))

    def _publish(self, event: Event) -> None:
        self._post(TurnResult([event], aligned=1))

    def _wake_worker(self) -> None:
        self._workers.wake(self._interpreter)
