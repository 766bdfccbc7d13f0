"""A session: what its client has sent and what it is still to be told. It outlives the connection."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Protocol

from stacl.server.aligner import Aligner
from stacl.server.events import Event, EventLog
from stacl.server.interpreter import Interpreter, Order, Report
from stacl.server.protocol import Change, Close, Command, End, Refusal
from stacl.server.tracks import Tracks

if TYPE_CHECKING:
    from stacl.live.translator import Translator
    from stacl.policies.base import Policy
    from stacl.server.limits import Limits
    from stacl.server.metrics import Metrics
    from stacl.server.worker import Mailbox, Scheduler


class Listener(Protocol):
    """The connection of the moment."""

    def news(self) -> None:
        """There are events to send, or there is room to take more in."""

    def refuse(self, refusal: Refusal) -> None:
        """Tell this; after a fatal one, close."""

    def replaced(self) -> None:
        """Another connection goes on with the session."""


class LiveSession:
    """Commands in, events out, all in the event loop; the computing is done by an Interpreter."""

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
        self.accepted = 0  # the number of the client's last message that was taken
        self.queued = 0  # the size of the orders that were taken and are not done yet
        self.finished = self.broken = False  # everything was said; the computing has failed
        self.touched = self.alone_since = time.monotonic()  # last heard or told something; last lost its client
        self._closing = self._wound_up = False
        self._last_word = 0.0  # when the last was said, or `close` came; of use only after `close`
        self._aligned = 0  # sentences that the aligner took and that are in the log
        self._limits, self._metrics, self._workers = limits, metrics, workers
        self._mailbox = mailbox
        self._aligner = Aligner(translator, alignments, self._tell, self._go_on) if align else None
        tracks = Tracks(translator, policies, segment=segment, longest=limits.sentence_words, aligner=self._aligner)
        self.policies = tracks.policies
        self._interpreter = Interpreter(tracks, self._report)

    def take(self, command: Command, arrived: float) -> None:
        """Put a command in line."""
        if self._closing:
            raise Refusal("closing", "after `close` nothing more can be said; start a new session")
        if isinstance(command, Change) and not 0 <= command.track < len(self.policies):
            last = len(self.policies) - 1
            raise Refusal("bad-message", f"there is no track {command.track}; they go from 0 to {last}")
        self._closing, self._wound_up = isinstance(command, Close), False
        self.touched = self._last_word = time.monotonic()
        order = Order(command, arrived)
        self.queued += order.size
        self._interpreter.add(order)
        self._go_on()

    def wind_up(self) -> bool:
        """Whether everything was said. A sentence that was broken off is ended first."""
        if not (self._closing or self._wound_up):
            touched = self.touched
            self.take(End(), time.perf_counter())
            self.touched, self._wound_up = touched, True
            return False
        return self.at_rest

    def facts(self) -> dict[str, Any]:
        """What `started` and `resumed` tell."""
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
        """Whether nothing more should be taken in for now."""
        return self.queued >= self._limits.queued_characters or self._interpreter.blocked

    @property
    def at_rest(self) -> bool:
        """Whether everything that is due was said and sent."""
        aligning = self._aligner is not None and self._aligner.taken > self._aligned
        return not (self.queued or self.log.unsent or aligning)

    def hurry(self) -> None:
        """Alignments are not waited for any more."""
        if self._aligner:
            self._aligner.hurry()

    def look(self, now: float) -> None:
        """Called now and then: who has heard the last word does not wait long for `closed`."""
        if self._closing and not self.finished and now - self._last_word > self._limits.align_seconds:
            self.hurry()

    def sent(self, number: int) -> None:
        """The client was given an event."""
        self.log.sent = number
        if self._interpreter.blocked and self.log.unsent <= self._limits.unsent_events // 2:
            self._interpreter.blocked = False
            self._go_on()

    def rewind(self, received: int) -> None:
        """The client comes back and has so much."""
        self.log.rewind(received)
        self.touched = time.monotonic()

    def release(self) -> None:
        """Nothing more will be computed."""
        self._interpreter.cancel()
        if self._aligner:
            self._aligner.cancel()
        self._go_on()  # to let go of its memory

    def _deliver(self, report: Report) -> None:
        if not self._wound_up:
            self.touched = time.monotonic()
        self.queued -= report.done
        self._aligned += report.aligned
        self.log.extend(report.events)
        for kind, name in (("heard", "words_in"), ("word", "words_out")):
            count = sum(event.kind == kind for event in report.events)
            if count:
                self._metrics.add(name, count, model=self.model)
                self._last_word = time.monotonic()
        if self.log.unsent >= self._limits.unsent_events:
            self._interpreter.blocked = True
        self.finished = self.finished or any(event.kind == "closed" for event in report.events)
        self.broken = self.broken or any(refusal.fatal for refusal in report.refusals)
        if self.finished or self.broken:
            self.release()
        if self.listener:
            for refusal in report.refusals:
                self.listener.refuse(refusal)
            self.listener.news()

    # From the threads that compute

    def _report(self, report: Report) -> None:
        self._mailbox.post(lambda: self._deliver(report))

    def _tell(self, event: Event) -> None:
        self._report(Report([event], aligned=1))

    def _go_on(self) -> None:
        self._workers.wake(self._interpreter)
