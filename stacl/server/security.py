"""Access control by host name, origin and token, and the security headers of every answer."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response

from stacl.server import journal
from stacl.server.protocol import Refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from stacl.server.hub import Hub

PROTECTED = ("/live", "/translate", "/models", "/metrics")
# The HTTP status of every error code. All others are 400.
STATUS = {
    "unauthorized": 401,
    "foreign-host": 403,
    "foreign-origin": 403,
    "not-found": 404,
    "unknown-model": 404,
    "bad-method": 405,
    "too-slow": 408,
    "too-large": 413,
    "bad-type": 415,
    "upgrade-required": 426,
    "busy": 429,
    "internal": 500,
    "too-long": 503,
    "shutdown": 503,
}
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_HOST = re.compile(r"(?P<name>[a-z0-9.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?")
_FIXED = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def answer(code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error of the HTTP endpoints."""
    content = {"code": code, "message": Refusal(code, message).message}
    return JSONResponse(content, STATUS.get(code, 400), headers)


class Guard:
    """The outermost middleware. It checks every request first."""

    def __init__(self, app: ASGIApp, hub: Hub) -> None:
        self._app, self._hub = app, hub
        self._token = hub.settings.token
        self._origins = set(hub.settings.origins)
        self._framed_by = " ".join(["'self'", *hub.settings.origins])  # which sites may embed the page in a frame
        # A proxy may pass on the public host name of the page.
        named = {urlsplit(origin).hostname or "" for origin in self._origins}
        self._hosts = None if hub.settings.hosts is None else {*hub.settings.hosts, *named}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin", "").lower()
        foreign = origin if origin in self._origins else None
        send = _with_headers(send, _page_policy(headers.get("host", ""), self._framed_by), foreign)
        try:
            self._check(scope, headers)
        except Refusal as refusal:
            self._hub.metrics.add("refused", reason=refusal.code)
            if scope["type"] == "websocket":
                journal.refused(refusal.code, refusal.message)
            await answer(refusal.code, refusal.message)(scope, receive, send)
            return
        if scope["type"] == "http" and scope["method"] == "OPTIONS" and foreign:
            allowed = {"Access-Control-Allow-Methods": "GET, POST", "Access-Control-Max-Age": "600"}
            allowed["Access-Control-Allow-Headers"] = "Authorization, Content-Type"
            await Response(status_code=204, headers=allowed)(scope, receive, send)
            return
        await self._guarded(scope, receive, send)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Log errors without any user text, and answer with `internal`."""
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            journal.failed(f"a request to {scope['path'] if scope['path'] in PROTECTED else 'the page'}", error)
            if not begun:
                await answer("internal", "the server failed; see its log")(scope, receive, send)

    def _check(self, scope: Scope, headers: Headers) -> None:
        host = headers.get("host", "").lower()
        matched = _HOST.fullmatch(host)
        name = matched["name"].strip("[]") if matched else None
        if self._hosts is not None and name not in self._hosts:
            raise Refusal("foreign-host", "the Host header names another host; see --host and --allow-origin")
        if scope["type"] == "websocket" or scope["method"] not in _SAFE_METHODS:
            self._check_origin(headers.getlist("origin"), host)
        if scope["type"] == "websocket" and scope["path"] != "/live":
            raise Refusal("not-found", "the websocket is at /live; a proxy that adds a path prefix must remove it")
        if scope["path"] in PROTECTED and self._token is not None and scope.get("method") != "OPTIONS":
            self._check_token(self._token, scope, headers)

    def _check_origin(self, origins: list[str], host: str) -> None:
        """Allow our own page and `--allow-origin`. Only browsers send an Origin; other programs send none."""
        for origin in map(str.lower, origins):
            try:
                parts = urlsplit(origin)
            except ValueError:  # such as http://[
                parts = urlsplit("")
            ours = len(origins) == 1 and parts.scheme in ("http", "https") and parts.netloc == host
            if not ours and origin not in self._origins:
                raise Refusal("foreign-origin", "pages of other origins may not use this server; see --allow-origin")

    def _check_token(self, token: str, scope: Scope, headers: Headers) -> None:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not hmac.compare_digest(given.strip().encode(), token.encode()):
            raise Refusal("unauthorized", "the token is missing or wrong: Authorization: Bearer ... or ?token=...")


def _page_policy(host: str, framed_by: str) -> str:
    """The Content-Security-Policy: this server only. Some browsers do not count websockets as `self`."""
    sockets = f" ws://{host} wss://{host}" if _HOST.fullmatch(host.lower()) else ""
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'{sockets}; "
        f"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors {framed_by}"
    )


def _with_headers(send: Send, page_policy: str, foreign: str | None) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] in ("http.response.start", "websocket.http.response.start"):
            headers = MutableHeaders(scope=message)
            headers.update(_FIXED)
            headers["Content-Security-Policy"] = page_policy
            headers.setdefault("Cache-Control", "no-store")
            if foreign:
                headers["Access-Control-Allow-Origin"] = foreign
                headers["Cross-Origin-Resource-Policy"] = "cross-origin"
                headers.add_vary_header("Origin")
        await send(message)

    return sending
