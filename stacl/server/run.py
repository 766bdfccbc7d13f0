"""The process: sockets, the web server, signals. It ends when it has said what is due."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from stacl.support.errors import UserError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from stacl.server.hub import Hub
    from stacl.server.limits import Limits

_SEND_BUFFER = 65_536  # bytes on their way to a client that does not read: they must still be kept when it comes back
_PING_SECONDS = 20  # keeps proxies from closing a silent connection, and finds out who has vanished
_VANISHED_MS = 60_000
_UNREAD_BYTES = 1_048_576
_BACKLOG = 2048  # connections that wait to be taken


def listen(host: str, port: int) -> socket.socket:
    """A socket at this address. Who connects before the server runs waits until then."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit both from the socket that they came by.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _VANISHED_MS)
        listener.bind(address)
        listener.listen(_BACKLOG)  # else a second server may bind here too, and fail later
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(f"port {port} of {host} is in use; take another with --port, or 0 for any") from None
        raise UserError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    except UnicodeError:
        raise UserError(f"--host needs a name or an address, not {host!r}") from None
    return listener


def allow_files(wanted: int) -> None:
    """A connection is an open file, and some systems allow few."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now != resource.RLIM_INFINITY and now < wanted:
        enough = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (enough, most))


def _limits(protocol: H11Protocol | WebSocketsSansIOProtocol) -> Limits:
    app: Any = protocol.config.app
    hub: Hub = app.state.hub
    return hub.limits


class Http(H11Protocol):
    """Requests, with an end to patience: who connects and does not ask is cut off."""

    _waiting: asyncio.TimerHandle | None = None
    _unread = 0  # bytes of an answer that were not taken yet when the waiting began

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > _limits(self).connections:
            transport.abort()
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle is None or self.cycle.response_complete:  # else the next request was there already
            self._wait()

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._stop_waiting()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop_waiting()
        self._unread = self.transport.get_write_buffer_size()
        self._waiting = self.loop.call_later(_limits(self).start_seconds, self._tired)

    def _tired(self) -> None:
        """Who is still reading the last answer is not silent."""
        if self.transport.get_write_buffer_size() < self._unread:
            self._wait()
        else:
            self.transport.abort()

    def _stop_waiting(self) -> None:
        if self._waiting:
            self._waiting.cancel()
            self._waiting = None


class Calm:
    """A transport that does at the end of the event loop's round what was asked for in it.

    The words of a turn go out together, and a pause of reading that is over within the round never happens: most of
    what a short message costs are calls of the system.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._output: list[bytes] = []
        self._reads = self._wanted = True
        self._due = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        self._output.append(data)
        self._later()

    def pause_reading(self) -> None:
        self._wanted = False
        self._later()

    def resume_reading(self) -> None:
        self._wanted = True
        self._later()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _later(self) -> None:
        if not self._due:
            self._due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._due = False
        if self._output:
            self._transport.write(b"".join(self._output))
            self._output.clear()
        if self._wanted != self._reads and not self._transport.is_closing():
            self._reads = self._wanted
            (self._transport.resume_reading if self._wanted else self._transport.pause_reading)()


class Websocket(WebSocketsSansIOProtocol):
    """Websockets that do not wait for ever for a client that does not read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport = Calm(self.transport, self.loop)  # type: ignore[assignment]

    async def run_asgi(self) -> None:
        await super().run_asgi()
        # Closing in order means to wait until everything was read.
        self.loop.call_later(_limits(self).stall_seconds, self.transport.abort)

    def handle_ping(self) -> None:
        super().handle_ping()
        if self.transport.get_write_buffer_size() > _UNREAD_BYTES:
            self.transport.abort()


class Server(uvicorn.Server):
    """Ends in order: no new connections, what is due is said, then everybody is told and the process exits with 0."""

    def __init__(self, app: Starlette) -> None:
        self._hub: Hub = app.state.hub
        super().__init__(
            uvicorn.Config(
                app,
                http=Http,
                ws=Websocket,
                loop="asyncio",
                interface="asgi3",
                lifespan="on",
                access_log=False,  # it would hold the token
                log_config=None,
                proxy_headers=False,
                server_header=False,
                # A little above our own limit, so that who exceeds it is told in words.
                ws_max_size=2 * self._hub.limits.message_bytes,
                ws_ping_interval=_PING_SECONDS,
                ws_ping_timeout=None,  # an answer may wait behind text that is not taken in yet
                ws_per_message_deflate=False,  # words are short; a window for each connection is not
                timeout_graceful_shutdown=5,
                backlog=_BACKLOG,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        draining = asyncio.create_task(self._hub.drain())
        while not draining.done() and not self.force_exit:  # which a second Ctrl-C asks for
            await asyncio.wait((draining,), timeout=0.1)
        self._hub.over.set()  # after a second Ctrl-C, too: who waits for a text is told
        await super().shutdown(sockets)
        if self.force_exit:  # what uvicorn leaves undone then: the threads that compute must end all the same
            await self.lifespan.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM end the server, and that is all: uvicorn would raise them again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
