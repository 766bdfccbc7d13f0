"""`/live`: one websocket. One task takes messages in and one sends, with a session between them."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from stacl.server import journal
from stacl.server.protocol import GREETINGS, Refusal, Start, command, decode, greeting, kind_of

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from stacl.server.hub import Hub
    from stacl.server.limits import Limits
    from stacl.server.session import LiveSession

_UNREAD_REPLIES = 100  # then nothing more is taken from a client that only makes mistakes and does not read


class Allowance:
    """So many messages a second in the long run, more at once after a silence."""

    def __init__(self, limits: Limits) -> None:
        self._rate, self._most = limits.messages_per_second, float(limits.message_burst)
        self._left, self._since = self._most, time.perf_counter()

    def take(self, now: float, held_up: float) -> bool:
        """Whether one more is allowed. What piled up while the server did not read is no fault of the client."""
        self._left = min(self._most, self._left + (now - self._since) * self._rate) + held_up * self._rate - 1
        self._since = now
        return self._left >= 0


class Live:
    """The endpoint, in plain ASGI: everything between the socket and a session is paid for with every word."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # "websocket.connect"
        await send({"type": "websocket.accept"})
        await Connection(self._hub, receive, send).run()


class Connection:
    """A websocket and, once the client has said which, its session."""

    def __init__(self, hub: Hub, receive: Receive, send: Send) -> None:
        self._hub, self._from_client, self._to_client = hub, receive, send
        self._session: LiveSession | None = None
        self._allowance = Allowance(hub.limits)
        self._replies: deque[str] = deque()  # what has no number and is not kept
        self._farewell: Refusal | None = None
        self._accepted: int | None = None  # the client's last message that its session had taken by then
        self._to_send, self._room = asyncio.Event(), asyncio.Event()
        self._began = time.monotonic()
        self._sending_since: float | None = None
        self._sending: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Until the client has gone or was sent away."""
        self._hub.connections.add(self)
        receiving = asyncio.create_task(self._receive())
        self._sending = sending = asyncio.create_task(self._send())
        try:
            await asyncio.wait((receiving, sending), return_when=asyncio.FIRST_COMPLETED)
            if self._farewell and not sending.done():
                await asyncio.wait((sending,), timeout=self._hub.limits.stall_seconds)
        finally:
            receiving.cancel()
            sending.cancel()
            for outcome in await asyncio.gather(receiving, sending, return_exceptions=True):
                self._note(outcome)
            self._hub.connections.discard(self)
            if self._session and self._session.listener is self:
                self._hub.left(self._session)

    # What the hub and the session ask for

    def news(self) -> None:
        self._to_send.set()
        self._room.set()

    def refuse(self, refusal: Refusal) -> None:
        self._hub.metrics.add("refused", reason=refusal.code)
        if not refusal.fatal:
            self._replies.append(refusal.text())
        elif self._farewell is None:
            self._farewell, self._accepted = refusal, self._session.accepted if self._session else None
        self.news()

    def replaced(self) -> None:
        """Another connection goes on with the session."""
        self.refuse(Refusal("taken-over", "another connection goes on with this session", fatal=True))
        self._session = None

    def check(self, now: float) -> None:
        """Called now and then: a client that does not begin, or does not read, is sent away."""
        limits = self._hub.limits
        if self._session is None and self._farewell is None and now - self._began > limits.start_seconds:
            self.refuse(Refusal("not-started", f"no `start` came within {limits.start_seconds:g} seconds", fatal=True))
        if self._sending_since is not None and now - self._sending_since > limits.stall_seconds:
            self._hub.metrics.add("dropped", reason="stalled")
            assert self._sending is not None
            self._sending.cancel()

    @property
    def at_rest(self) -> bool:
        """Whether nothing is due to this client."""
        return not self._replies and (self._session is None or self._session.at_rest)

    # Taking in

    async def _receive(self) -> None:
        while True:
            held_up = 0.0 if self._has_room() else await self._wait_for_room()
            message = await self._from_client()
            gone = message["type"] == "websocket.disconnect"
            if gone and not self._farewell and not (self._session and self._session.finished):
                self._hub.metrics.add("dropped", reason="gone")
            if gone or self._farewell:
                return
            if self._session and self._hub.stopping:
                continue  # what was due is being said: this would be lost, and with its number free it is sent again
            try:
                self._take(message.get("text"), held_up)
            except Refusal as refusal:
                self.refuse(refusal if self._session else refusal.made_fatal())
                if self._farewell:
                    return

    async def _wait_for_room(self) -> float:
        """Until the client may say more; the seconds that this took."""
        began = time.perf_counter()
        while not self._has_room():
            self._room.clear()
            await self._room.wait()
        return time.perf_counter() - began

    def _has_room(self) -> bool:
        if self._farewell:
            return True  # for what is not listened to any more
        busy = self._session is not None and self._session.full
        return not (busy or self._hub.stopping or len(self._replies) >= _UNREAD_REPLIES)

    def _take(self, text: str | None, held_up: float) -> None:
        now, limits = time.perf_counter(), self._hub.limits
        if not self._allowance.take(now, held_up):
            most = f"{limits.messages_per_second:g} messages a second, or {limits.message_burst} at once"
            raise Refusal("too-fast", f"at most {most}; resume, and send more text in each", fatal=True)
        if text is None:
            raise Refusal("bad-message", "expected a text frame that holds JSON, not a binary one")
        if (len(text) if text.isascii() else len(text.encode())) > limits.message_bytes:
            raise Refusal("too-large", f"a message has at most {limits.message_bytes} bytes; send parts", fatal=True)
        found = decode(text)
        if self._session is None:
            self._greet(found)
        else:
            self._follow(self._session, found, now)

    def _greet(self, found: dict[str, Any]) -> None:
        kind = kind_of(found)
        if kind not in GREETINGS:
            raise Refusal("not-started", f"the first message must be `start` or `resume`, not `{kind}`")
        wanted = greeting(kind, found)
        if isinstance(wanted, Start):
            session = self._hub.open(wanted)
            reply = {"type": "started"} | session.facts()
        else:
            session = self._hub.resume(wanted)
            reply = {"type": "resumed"} | session.facts() | {"accepted": session.accepted}
        session.listener, self._session = self, session
        self._replies.append(json.dumps(reply))
        self.news()

    def _follow(self, session: LiveSession, found: dict[str, Any], now: float) -> None:
        """Each of the client's messages counts once; what is refused has no effect, but its number is used up."""
        number = found.get("seq")
        if type(number) is not int:
            if found.get("type") in GREETINGS:
                raise Refusal("bad-message", "this connection has its session; another needs another connection")
            raise Refusal("bad-message", f"seq must be a whole number, not {number!r}")
        if number <= session.accepted:
            return
        if number > session.accepted + 1:
            raise Refusal("out-of-order", f"expected seq {session.accepted + 1}, not {number}")
        session.accepted = number
        session.take(command(kind_of(found), found), now)

    # Sending

    async def _send(self) -> None:
        while self._farewell is None:
            text = self._next()
            if text is not None:
                await self._put(text)
            elif self._session and self._session.finished:
                await self._close(1000, "everything was said")
                return
            else:
                self._to_send.clear()
                await self._to_send.wait()
        # Who was accepted is told so, whatever came next: without its session's name nobody can resume.
        while self._replies:
            await self._put(self._replies.popleft())
        await self._put(self._farewell.text(self._accepted))
        await self._close(self._farewell.close_code, self._farewell.code)

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
            self._hub.metrics.delayed(now - event.arrived)
        # Counted as sent before it is: another connection may take over while this one waits for its client.
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
        gone = (asyncio.CancelledError, OSError)  # with an OSError a server says that there is nobody any more
        if isinstance(outcome, BaseException) and not isinstance(outcome, gone):
            journal.failed("a connection", outcome)
