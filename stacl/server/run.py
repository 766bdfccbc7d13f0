"""The server process: sockets, uvicorn, signals, an orderly shutdown.

`HttpProtocol` and `WebsocketProtocol` override methods of uvicorn's protocol classes. These are not a public interface,
so pyproject.toml pins uvicorn to one version.
"""

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

# Bytes. Whatever is in flight to a client that stops reading must still be in the log when it resumes.
_SEND_BUFFER = 65_536
_PING_SECONDS = 20  # keeps proxies from closing idle connections and detects lost clients
_TCP_TIMEOUT_MS = 60_000
_UNREAD_BYTES = 1_048_576  # maximum size of unread answers to pings; above it the connection is closed
_BACKLOG = 2048  # connections waiting for accept


def listen(host: str, port: int) -> socket.socket:
    """A listening socket at this address. Clients may connect at once; they wait until the server runs."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit both options.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _TCP_TIMEOUT_MS)
        listener.bind(address)
        listener.listen(_BACKLOG)  # here, so that a second server at the same address fails at once
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"port {port} of {host} is in use; choose another with --port, or 0 for any free one"
            ) from None
        raise UserError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    except UnicodeError:
        raise UserError(f"--host needs a name or an address, not {host!r}") from None
    return listener


def allow_files(wanted: int) -> None:
    """Raise the limit on open files. Every connection is an open file."""
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


class HttpProtocol(H11Protocol):
    """HTTP with an idle time-out: a connection without a request is closed after `start_seconds`."""

    _idle_timer: asyncio.TimerHandle | None = None
    _unread = 0  # bytes of the last answer that were not sent yet when the timer started

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > _limits(self).connections:
            transport.abort()
        else:
            self._start_idle_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_idle_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle is None or self.cycle.response_complete:  # otherwise a pipelined request is running
            self._start_idle_timer()

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._stop_idle_timer()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_idle_timer()
        super().connection_lost(exc)

    def _start_idle_timer(self) -> None:
        self._stop_idle_timer()
        self._unread = self.transport.get_write_buffer_size()
        self._idle_timer = self.loop.call_later(_limits(self).start_seconds, self._on_idle_timeout)

    def _on_idle_timeout(self) -> None:
        """Close the connection, unless the client is still reading the last answer."""
        if self.transport.get_write_buffer_size() < self._unread:
            self._start_idle_timer()
        else:
            self.transport.abort()

    def _stop_idle_timer(self) -> None:
        if self._idle_timer:
            self._idle_timer.cancel()
            self._idle_timer = None


class CoalescingTransport:
    """A transport that joins the writes of one event loop iteration into one system call.

    A pause in reading that ends within the same iteration is skipped. System calls are most of the cost of a short
    message.
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


class WebsocketProtocol(WebSocketsSansIOProtocol):
    """Websockets with a time-out for clients that do not read."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport = CoalescingTransport(self.transport, self.loop)  # type: ignore[assignment]

    async def run_asgi(self) -> None:
        await super().run_asgi()
        # An orderly close waits until the client has read everything.
        self.loop.call_later(_limits(self).stall_seconds, self.transport.abort)

    def handle_ping(self) -> None:
        super().handle_ping()
        if self.transport.get_write_buffer_size() > _UNREAD_BYTES:
            self.transport.abort()


class Server(uvicorn.Server):
    """Shuts down in order: refuse new connections, send pending output, notify clients, exit with 0."""

    def __init__(self, app: Starlette) -> None:
        self._hub: Hub = app.state.hub
        super().__init__(
            uvicorn.Config(
                app,
                http=HttpProtocol,
                ws=WebsocketProtocol,
                loop="asyncio",
                interface="asgi3",
                lifespan="on",
                access_log=False,  # it would contain the token
                log_config=None,
                proxy_headers=False,
                server_header=False,
                # Above our own limit, so that a client that exceeds it gets an error message.
                ws_max_size=2 * self._hub.limits.message_bytes,
                ws_ping_interval=_PING_SECONDS,
                ws_ping_timeout=None,  # a pong may wait behind text that is not read yet
                ws_per_message_deflate=False,  # messages are short; a compression window takes memory
                timeout_graceful_shutdown=5,
                backlog=_BACKLOG,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        draining = asyncio.create_task(self._hub.drain())
        while not draining.done() and not self.force_exit:  # set by a second Ctrl-C
            await asyncio.wait((draining,), timeout=0.1)
        self._hub.over.set()  # after a second Ctrl-C too: requests in progress get an answer
        await super().shutdown(sockets)
        if self.force_exit:  # uvicorn skips this after a forced exit, but the worker threads must end
            await self.lifespan.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle SIGINT and SIGTERM without raising them again afterwards, as uvicorn does."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
