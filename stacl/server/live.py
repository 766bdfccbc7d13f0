"""`/live`: one websocket. One task receives, one sends; a session connects them."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from typing import TYPE_CHECKING

from stacl.server import journal
from stacl.server.protocol import (
    FIRST_TYPES,
    InvalidMessage,
    Message,
    Refusal,
    ResumeMessage,
    StartMessage,
    command,
    decode,
)

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from stacl.server.hub import Hub
    from stacl.server.limits import Limits
    from stacl.server.session import LiveSession

_UNREAD_REPLIES = 100  # unsent error replies after which the server stops reading from the client


class RateLimit:
    """A token bucket: `messages_per_second` on average, bursts of `message_burst`."""

    def __init__(self, limits: Limits) -> None:
        self._rate, self._most = limits.messages_per_second, float(limits.message_burst)
        self._left, self._since = self._most, time.perf_counter()

    def take(self, now: float, paused: float) -> bool:
        """Whether one more message is allowed. `paused` is the seconds in which the server did not read."""
        self._left = min(self._most, self._left + (now - self._since) * self._rate) + paused * self._rate - 1
        self._since = now
        return self._left >= 0


class Live:
    """The endpoint, in plain ASGI, because every layer between socket and session delays every word."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # "websocket.connect"
        await send({"type": "websocket.accept"})
        await Connection(self._hub, receive, send).run()


class Connection:
    """A websocket and, after `start` or `resume`, its session."""

    def __init__(self, hub: Hub, receive: Receive, send: Send) -> None:
        self._hub, self._from_client, self._to_client = hub, receive, send
        self._session: LiveSession | None = None
        self._rate_limit = RateLimit(hub.limits)
        self._replies: deque[str] = deque()  # messages without a number, which are not kept for a resume
        self._closing_error: Refusal | None = None
        self._accepted: int | None = None  # `accepted` of the session when it was closed
        self._to_send, self._room = asyncio.Event(), asyncio.Event()
        self._began = time.monotonic()
        self._sending_since: float | None = None
        self._sending: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve the client until either side closes the connection."""
        self._hub.connections.add(self)
        receiving = asyncio.create_task(self._receive())
        self._sending = sending = asyncio.create_task(self._send())
        try:
            await asyncio.wait((receiving, sending), return_when=asyncio.FIRST_COMPLETED)
            if self._closing_error and not sending.done():
                await asyncio.wait((sending,), timeout=self._hub.limits.stall_seconds)
        finally:
            receiving.cancel()
            sending.cancel()
            for outcome in await asyncio.gather(receiving, sending, return_exceptions=True):
                self._note(outcome)
            self._hub.connections.discard(self)
            if self._session and self._session.listener is self:
                self._hub.disconnected(self._session)

    # Called by the hub and the session

    def notify(self) -> None:
        self._to_send.set()
        self._room.set()

    def refuse(self, refusal: Refusal) -> None:
        self._hub.metrics.add("refused", reason=refusal.code)
        if not refusal.fatal:
            self._replies.append(refusal.text())
        elif self._closing_error is None:
            self._closing_error, self._accepted = refusal, self._session.accepted if self._session else None
        self.notify()

    def replaced(self) -> None:
        """Another connection has resumed the session."""
        self.refuse(Refusal("taken-over", "another connection has resumed this session", fatal=True))
        self._session = None

    def check(self, now: float) -> None:
        """Close a connection that does not start a session or does not read. Called periodically."""
        limits = self._hub.limits
        if self._session is None and self._closing_error is None and now - self._began > limits.start_seconds:
            self.refuse(
                Refusal(
                    "not-started", f"no `start` or `resume` arrived within {limits.start_seconds:g} seconds", fatal=True
                )
            )
        if self._sending_since is not None and now - self._sending_since > limits.stall_seconds:
            self._hub.metrics.add("dropped", reason="stalled")
            assert self._sending is not None
            self._sending.cancel()

    @property
    def all_sent(self) -> bool:
        """Whether nothing remains to be sent to this client."""
        return not self._replies and (self._session is None or self._session.all_sent)

    # Receiving

    async def _receive(self) -> None:
        while True:
            paused = 0.0 if self._has_room() else await self._wait_for_room()
            message = await self._from_client()
            gone = message["type"] == "websocket.disconnect"
            if gone and not self._closing_error and not (self._session and self._session.finished):
                self._hub.metrics.add("dropped", reason="gone")
            if gone or self._closing_error:
                return
            if self._session and self._hub.stopping:
                continue  # not accepted: the client can send the same number again later
            try:
                self._take(message.get("text"), paused)
            except Refusal as refusal:
                self.refuse(refusal if self._session else refusal.made_fatal())
                if self._closing_error:
                    return

    async def _wait_for_room(self) -> float:
        """Wait until there is room for another message. Return the seconds this took."""
        began = time.perf_counter()
        while not self._has_room():
            self._room.clear()
            await self._room.wait()
        return time.perf_counter() - began

    def _has_room(self) -> bool:
        if self._closing_error:
            return True  # messages are ignored from now on
        busy = self._session is not None and self._session.full
        return not (busy or self._hub.stopping or len(self._replies) >= _UNREAD_REPLIES)

    def _take(self, text: str | None, paused: float) -> None:
        now, limits = time.perf_counter(), self._hub.limits
        if not self._rate_limit.take(now, paused):
            most = f"{limits.messages_per_second:g} messages a second, or {limits.message_burst} at once"
            raise Refusal(
                "too-fast", f"at most {most} are allowed; resume, and send more text in each message", fatal=True
            )
        if text is None:
            raise Refusal("bad-message", "expected a text frame with JSON, not a binary frame")
        if (len(text) if text.isascii() else len(text.encode())) > limits.message_bytes:
            raise Refusal(
                "too-large", f"a message has at most {limits.message_bytes} bytes; send it in parts", fatal=True
            )
        message = decode(text)
        if self._session is None:
            self._open_session(message)
        else:
            self._accept(self._session, message, now)

    def _open_session(self, message: Message | InvalidMessage) -> None:
        match message:
            case StartMessage():
                session = self._hub.open(message)
                reply = {"type": "started"} | session.description()
            case ResumeMessage():
                session = self._hub.resume(message)
                reply = {"type": "resumed"} | session.description() | {"accepted": session.accepted}
            case InvalidMessage(kind=kind, refusal=refusal) if kind is None or kind in FIRST_TYPES:
                raise refusal
            case _:
                raise Refusal("not-started", "the first message of a connection must be `start` or `resume`")
        session.listener, self._session = self, session
        self._replies.append(json.dumps(reply))
        self.notify()

    def _accept(self, session: LiveSession, message: Message | InvalidMessage, now: float) -> None:
        """Accept each numbered message once. A refused message has no effect, but uses up its number."""
        if isinstance(message, StartMessage | ResumeMessage):
            raise Refusal("bad-message", "this connection has a session already; open another connection")
        number = message.seq
        if type(number) is not int:
            raise Refusal("bad-message", f"seq must be a whole number, not {number!r}")
        if number <= session.accepted:
            return
        if number > session.accepted + 1:
            raise Refusal("out-of-order", f"expected seq {session.accepted + 1}, not {number}")
        session.accepted = number
        if isinstance(message, InvalidMessage):
            raise message.refusal
        session.take(command(message), now)

    # Sending

    async def _send(self) -> None:
        while self._closing_error is None:
            text = self._next()
            if text is not None:
                await self._put(text)
            elif self._session and self._session.finished:
                await self._close(1000, "the translation is complete")
                return
            else:
                self._to_send.clear()
                await self._to_send.wait()
        # `started` is sent even if the next message was refused: without the session's key the client cannot resume.
        while self._replies:
            await self._put(self._replies.popleft())
        await self._put(self._closing_error.text(self._accepted))
        await self._close(self._closing_error.close_code, self._closing_error.code)

    def _next(self) -> str | None:
        if self._replies:
            return self._replies.popleft()
        session = self._session
        if session is None or not session.log.unsent:
            return None
        before = session.log.farthest
        number, event = session.log.next()
        now = time.perf_counter()
        if event.arrived is not None and number > before:
            self._hub.metrics.word_sent(now - event.arrived)
        # Counted first, sent afterwards: another connection may resume the session while this one waits in `send`.
        session.sent(number)
        return event.text(number, now)

    async def _put(self, text: str) -> None:
        self._sending_since = time.monotonic()
        await self._to_client({"type": "websocket.send", "text": text})
        self._sending_since = None
        self._room.set()

    async def _close(self, code: int, reason: str) -> None:
        await self._to_client({"type": "websocket.close", "code": code, "reason": reason})

    def _note(self, outcome: object) -> None:
        gone = (asyncio.CancelledError, OSError)  # uvicorn raises OSError when the client has disconnected
        if isinstance(outcome, BaseException) and not isinstance(outcome, gone):
            journal.failed("a connection", outcome)
