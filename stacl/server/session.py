"""A session: the queue of its client's commands and the log of its events. It outlives the connection."""

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

    def news(self) -> None:
        """There are events to send, or there is room for more messages."""

    def refuse(self, refusal: Refusal) -> None:
        """Send this error; close the connection after a fatal one."""

    def replaced(self) -> None:
        """Another connection has resumed the session."""


class LiveSession:
    """Commands in, events out, all in the event loop. An Interpreter computes on the worker threads."""

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
        self.accepted = 0  # the number of the last client message that was taken
        self.queued = 0  # the size of the commands that are not done yet
        self.finished = self.broken = False  # all output was produced; an internal error occurred
        self.touched = self.alone_since = time.monotonic()  # last activity; when the connection was lost
        self._closing = self._wound_up = False
        self._last_word = 0.0  # when the last word was written, or `close` arrived; used only after `close`
        self._aligned = 0  # sentences from the aligner that are in the log
        self._limits, self._metrics, self._workers = limits, metrics, workers
        self._mailbox = mailbox
        self._aligner = Aligner(translator, alignments, self._tell, self._go_on) if align else None
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
        self.touched = self._last_word = time.monotonic()
        order = Order(command, arrived)
        self.queued += order.size
        self._interpreter.add(order)
        self._go_on()

    def wind_up(self) -> bool:
        """Whether all output was sent. The first call ends an unfinished sentence."""
        if not (self._closing or self._wound_up):
            touched = self.touched
            self.take(End(), time.perf_counter())
            self.touched, self._wound_up = touched, True
            return False
        return self.at_rest

    def facts(self) -> dict[str, Any]:
        """The fields of `started` and `resumed`."""
        return {
            "session": self.key,
            "model": self.model,
            "source": self.translator.source_language.code,
            "target": self.translator.target_language.code,
            "policies": self.policies,
            "limits": self._limits.told(),
        }

    @property
    def full(self) -> bool:
        """Whether no more messages should be read for now."""
        return self.queued >= self._limits.queued_characters or self._interpreter.blocked

    @property
    def at_rest(self) -> bool:
        """Whether all output was produced and sent."""
        aligning = self._aligner is not None and self._aligner.taken > self._aligned
        return not (self.queued or self.log.unsent or aligning)

    def hurry(self) -> None:
        """Stop waiting for alignments."""
        if self._aligner:
            self._aligner.hurry()

    def look(self, now: float) -> None:
        """Called periodically: after the last word, `closed` waits at most `align_seconds` for alignments."""
        if self._closing and not self.finished and now - self._last_word > self._limits.align_seconds:
            self.hurry()

    def sent(self, number: int) -> None:
        """An event was sent to the client."""
        self.log.sent = number
        if self._interpreter.blocked and self.log.unsent <= self._limits.unsent_events // 2:
            self._interpreter.blocked = False
            self._go_on()

    def rewind(self, received: int) -> None:
        """The client resumes after this event."""
        self.log.rewind(received)
        self.touched = time.monotonic()

    def release(self) -> None:
        """Stop computing and free the memory."""
        self._interpreter.cancel()
        if self._aligner:
            self._aligner.cancel()
        self._go_on()  # frees its memory

    def _deliver(self, result: TurnResult) -> None:
        if not self._wound_up:
            self.touched = time.monotonic()
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
            self.listener.news()

    # Called on the worker threads

    def _post(self, result: TurnResult) -> None:
        self._mailbox.post(lambda: self._deliver(result))

    def _tell(self, event: Event) -> None:
        self._post(TurnResult([event], aligned=1))

    def _go_on(self) -> None:
        self._workers.wake(self._interpreter)
