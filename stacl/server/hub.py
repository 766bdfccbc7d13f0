"""All sessions of a server: who may begin one, who may come back, who has been away for too long."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from stacl.server import memory
from stacl.server.metrics import Metrics
from stacl.server.protocol import Refusal, Resume, Start, safe_policy
from stacl.server.session import LiveSession
from stacl.server.worker import Mailbox, Scheduler
from stacl.support.errors import suggest

if TYPE_CHECKING:
    from stacl.live.translator import Translator
    from stacl.server.live import Connection
    from stacl.server.settings import Settings

_LOOK_ROUND = 0.5  # seconds between looks at who is idle
_TIDY_AFTER = 10.0  # seconds, at least, between one time that memory is given back and the next


class Hub:
    """Everything here happens in the event loop."""

    def __init__(self, models: Mapping[str, Translator], settings: Settings) -> None:
        self.models, self.settings, self.limits = dict(models), settings, settings.limits
        self.metrics = Metrics()
        self.sessions: dict[str, LiveSession] = {}
        self.connections: set[Connection] = set()
        self.requests = 0  # to /translate, in progress
        self.stopping = False
        self._untidy = False  # sessions have gone since memory was given back
        self._tidied = -_TIDY_AFTER
        self.over = asyncio.Event()  # no more time, even for what is in progress
        self.workers = Scheduler(settings.workers, "words")
        # What takes long and nobody listens to meanwhile: whole texts; and what nobody even waits for.
        self.texts = Scheduler(1, "texts")
        self.alignments = Scheduler(1, "alignments", behind=(self.workers, self.texts))

    @cached_property
    def mailbox(self) -> Mailbox:
        return Mailbox(asyncio.get_running_loop())

    def model(self, name: str | None) -> tuple[str, Translator]:
        """The model of this name, or the first."""
        chosen = next(iter(self.models)) if name is None else name
        if chosen not in self.models:
            raise Refusal("unknown-model", f"no model is called {chosen!r}{suggest(chosen, self.models)}")
        return chosen, self.models[chosen]

    def open(self, start: Start) -> LiveSession:
        self.check_open()
        name, translator = self.model(start.model)
        specs = start.policies
        if specs is not None and not 1 <= len(specs) <= self.limits.tracks:
            raise Refusal("bad-message", f"a session has 1 to {self.limits.tracks} policies, not {len(specs)}")
        policies = [translator.policy] if specs is None else [safe_policy(spec) for spec in specs]
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

    def resume(self, resume: Resume) -> LiveSession:
        """The session that a client comes back to. Whoever else holds it is sent away."""
        self.check_open()
        session = self.sessions.get(resume.session)
        if session is None or session.broken:
            wait = f"for {self.limits.resume_seconds:g} seconds, less where the server is full"
            raise Refusal("unknown-session", f"no such session; one is kept {wait}: start a new one")
        session.rewind(resume.received)
        if session.listener:
            session.listener.replaced()
        self.metrics.add("sessions_resumed")
        return session

    def check_open(self) -> None:
        if self.stopping:
            raise Refusal("shutdown", "the server is shutting down; come back later", fatal=True)

    def left(self, session: LiveSession) -> None:
        """The connection of a session is gone."""
        session.listener = None
        session.alone_since = time.monotonic()

    def _make_room(self) -> None:
        """When all places are taken, whoever is away and needs his least gives way."""
        if len(self.sessions) < self.limits.sessions:
            return
        away = [session for session in self.sessions.values() if session.listener is None]
        if not away:
            raise Refusal("full", f"all {self.limits.sessions} sessions are taken; try again later", fatal=True)
        self._forget(min(away, key=lambda session: (not session.finished, session.alone_since)))

    def _forget(self, session: LiveSession) -> None:
        del self.sessions[session.key]
        session.release()
        self._untidy = True

    async def look_round(self) -> None:
        """End what has been idle or alone for too long, for as long as the server runs."""
        while True:
            await asyncio.sleep(_LOOK_ROUND)
            await self._tidy(time.monotonic())  # before others go: threads that compute let go of theirs meanwhile
            self._look(time.monotonic())

    async def _tidy(self, now: float) -> None:
        """Give the memory of sessions that have gone back to the machine; that takes milliseconds, so not often."""
        if self._untidy and now - self._tidied >= _TIDY_AFTER:
            self._untidy, self._tidied = False, now
            await asyncio.to_thread(memory.give_back)

    def _look(self, now: float) -> None:
        for session in list(self.sessions.values()):
            alone = session.listener is None
            if session.broken or (alone and now - session.alone_since > self.limits.resume_seconds):
                self._forget(session)
            elif not alone and now - session.touched > self.limits.idle_seconds and session.wind_up():
                self._end_idle(session)
            else:
                session.look(now)
        for connection in list(self.connections):
            connection.check(now)

    def _end_idle(self, session: LiveSession) -> None:
        assert session.listener is not None
        patience = f"nothing was heard for {self.limits.idle_seconds:g} seconds"
        session.listener.refuse(Refusal("idle", f"{patience}, so the session has ended", fatal=True))
        self._forget(session)

    async def drain(self) -> None:
        """Take nothing more in, finish what is due, and send everybody home."""
        self.stopping = True
        for session in list(self.sessions.values()):
            if session.listener:
                session.hurry()
                session.wind_up()
        deadline = time.monotonic() + self.limits.drain_seconds
        while time.monotonic() < deadline and (self.requests or any(not one.at_rest for one in self.connections)):
            await asyncio.sleep(0.02)
        self.over.set()
        for connection in list(self.connections):
            due = "what was due has been said" if connection.at_rest else "not all that was taken has been translated"
            connection.refuse(Refusal("shutdown", f"the server is shutting down; {due}", fatal=True))
        while (self.connections or self.requests) and time.monotonic() < deadline + 1:
            await asyncio.sleep(0.02)

    def close(self) -> None:
        for session in list(self.sessions.values()):
            self._forget(session)
        for scheduler in (self.workers, self.texts, self.alignments):
            scheduler.close()
