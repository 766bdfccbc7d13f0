"""All sessions of a server: start, resume, time-outs, eviction, shutdown."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from stacl.server import memory
from stacl.server.metrics import Metrics
from stacl.server.protocol import Refusal, ResumeMessage, StartMessage, safe_policy
from stacl.server.session import LiveSession
from stacl.server.worker import Mailbox, Scheduler
from stacl.support.errors import suggest

if TYPE_CHECKING:
    from stacl.live.translator import Translator
    from stacl.server.live import Connection
    from stacl.server.settings import Settings

_CHECK_INTERVAL = 0.5  # seconds between checks for idle sessions
_TRIM_INTERVAL = 10.0  # minimum seconds between two calls that return memory to the system


class Hub:
    """Runs in the event loop only."""

    def __init__(self, models: Mapping[str, Translator], settings: Settings) -> None:
        self.models, self.settings, self.limits = dict(models), settings, settings.limits
        self.sessions: dict[str, LiveSession] = {}
        self.connections: set[Connection] = set()
        self.requests = 0  # to /translate, in progress
        self.stopping = False
        self._trim_due = False  # sessions have ended since the last trim
        self._trimmed = -_TRIM_INTERVAL
        self.over = asyncio.Event()  # set when requests in progress must end too
        self.workers = Scheduler(settings.workers, "words")
        # Whole texts and alignments take long, so they have threads of their own. Alignments have the lowest priority.
        self.texts = Scheduler(1, "texts")
        self.alignments = Scheduler(1, "alignments", behind=(self.workers, self.texts))
        self.metrics = Metrics(
            {
                "sessions_open": lambda: len(self.sessions),
                "connections_open": lambda: len(self.connections),
                "queue_length": lambda: self.workers.waiting,
            }
        )

    @cached_property
    def mailbox(self) -> Mailbox:
        return Mailbox(asyncio.get_running_loop())

    def model(self, name: str | None) -> tuple[str, Translator]:
        """The model of this name, or the first."""
        chosen = next(iter(self.models)) if name is None else name
        if chosen not in self.models:
            raise Refusal("unknown-model", f"unknown model {chosen!r}{suggest(chosen, self.models)}")
        return chosen, self.models[chosen]

    def open(self, start: StartMessage) -> LiveSession:
        self.check_open()
        name, translator = self.model(start.model)
        specs = start.policies
        if specs is not None and not 1 <= len(specs) <= self.limits.tracks:
            raise Refusal("bad-message", f"a session has 1 to {self.limits.tracks} policies, not {len(specs)}")
        policies = [translator.live_policy] if specs is None else [safe_policy(spec) for spec in specs]
        self._make_room()
        session = LiveSession(
            secrets.token_urlsafe(24),
            name,
            translator,
            policies,
            segment=start.segment,
            align=start.align,
            limits=self.limits,
            metrics=self.metrics,
            mailbox=self.mailbox,
            workers=self.workers,
            alignments=self.alignments,
        )
        self.sessions[session.key] = session
        self.metrics.add("sessions_opened")
        return session

    def resume(self, resume: ResumeMessage) -> LiveSession:
        """The session to continue. Another connection that holds it is closed."""
        self.check_open()
        session = self.sessions.get(resume.session)
        if session is None or session.broken:
            kept = f"kept for {self.limits.resume_seconds:g} seconds, or less when the server is full"
            raise Refusal("unknown-session", f"no such session; a disconnected session is {kept}: start a new one")
        session.rewind(resume.received)
        if session.listener:
            session.listener.replaced()
        self.metrics.add("sessions_resumed")
        return session

    def check_open(self) -> None:
        if self.stopping:
            raise Refusal("shutdown", "the server is shutting down; try again later", fatal=True)

    def disconnected(self, session: LiveSession) -> None:
        """Called when the connection of a session was lost."""
        session.listener = None
        session.disconnected_since = time.monotonic()

    def _make_room(self) -> None:
        """When all sessions are taken, evict a disconnected one: finished ones first, then the longest disconnected."""
        if len(self.sessions) < self.limits.sessions:
            return
        disconnected = [session for session in self.sessions.values() if session.listener is None]
        if not disconnected:
            raise Refusal("full", f"all {self.limits.sessions} sessions are taken; try again later", fatal=True)
        self._remove(min(disconnected, key=lambda session: (not session.finished, session.disconnected_since)))

    def _remove(self, session: LiveSession) -> None:
        del self.sessions[session.key]
        session.release()
        self._trim_due = True

    async def watch(self) -> None:
        """End sessions that were idle or disconnected for too long. Runs until the server stops."""
        while True:
            await asyncio.sleep(_CHECK_INTERVAL)
            await self._trim(time.monotonic())  # before sessions are dropped: worker threads still hold those
            self._check_all(time.monotonic())

    async def _trim(self, now: float) -> None:
        """Return the memory of ended sessions to the system. This takes milliseconds, so it is done rarely."""
        if self._trim_due and now - self._trimmed >= _TRIM_INTERVAL:
            self._trim_due, self._trimmed = False, now
            await asyncio.to_thread(memory.trim)

    def _check_all(self, now: float) -> None:
        for session in list(self.sessions.values()):
            connected = session.listener is not None
            if session.broken or (not connected and now - session.disconnected_since > self.limits.resume_seconds):
                self._remove(session)
            elif connected and now - session.last_active > self.limits.idle_seconds and session.wind_up():
                self._end_idle(session)
            else:
                session.check(now)
        for connection in list(self.connections):
            connection.check(now)

    def _end_idle(self, session: LiveSession) -> None:
        assert session.listener is not None
        reason = f"nothing was received for {self.limits.idle_seconds:g} seconds"
        session.listener.refuse(Refusal("idle", f"{reason}, so the session has ended", fatal=True))
        self._remove(session)

    async def drain(self) -> None:
        """Accept nothing more, finish the pending output, then close all connections."""
        self.stopping = True
        for session in list(self.sessions.values()):
            if session.listener:
                session.hurry()
                session.wind_up()
        deadline = time.monotonic() + self.limits.drain_seconds
        while time.monotonic() < deadline and (self.requests or any(not item.all_sent for item in self.connections)):
            await asyncio.sleep(0.02)
        self.over.set()
        for connection in list(self.connections):
            outcome = "all pending output was sent" if connection.all_sent else "not all accepted text was translated"
            connection.refuse(Refusal("shutdown", f"the server is shutting down; {outcome}", fatal=True))
        while (self.connections or self.requests) and time.monotonic() < deadline + 1:
            await asyncio.sleep(0.02)

    def close(self) -> None:
        for session in list(self.sessions.values()):
            self._remove(session)
        for scheduler in (self.workers, self.texts, self.alignments):
            scheduler.close()
