"""The ASGI application: routes, middleware, lifespan."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute

from stacl.server import pages
from stacl.server.endpoints import Endpoints
from stacl.server.hub import Hub
from stacl.server.live import Live
from stacl.server.protocol import Close, Text
from stacl.server.security import Guard, answer
from stacl.server.settings import Settings
from stacl.server.tracks import Tracks

if TYPE_CHECKING:
    from stacl.live.translator import Translator


def create_app(models: Mapping[str, Translator], settings: Settings | None = None) -> Starlette:
    """The server as an ASGI application. `app.state.hub` holds its sessions; `hub.drain()` ends them in order."""
    if not models:
        raise ValueError("a server needs at least one model")
    hub = Hub(models, settings or Settings())
    endpoints = Endpoints(hub)

    routes = [
        WebSocketRoute("/live", Live(hub)),
        Route("/live", endpoints.live),
        Route("/translate", endpoints.translate, methods=["POST"]),
        Route("/models", endpoints.models),
        Route("/health", endpoints.health),
        Route("/metrics", endpoints.metrics),
        *pages.routes(),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hub=hub)],
        exception_handlers={HTTPException: _refused},
        lifespan=_lifespan,
    )
    app.router.redirect_slashes = False
    app.state.hub = hub
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    hub: Hub = app.state.hub
    for model in hub.models.values():
        await asyncio.to_thread(_warm, model)
    watching = asyncio.create_task(hub.watch())
    try:
        yield
    finally:
        watching.cancel()
        hub.close()


def _warm(translator: Translator) -> None:
    """Translate once before the first client connects. The first word loads dictionaries and allocates memory."""
    tracks = Tracks(translator, [translator.live_policy], segment=True, longest=100)
    for command in (Text("1 2 3 "), Close()):
        for _ in tracks.run(command, 0.0):
            pass


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return answer("not-found", "there is no such resource; docs/api.md lists them")
    if error.status_code == 405:
        return answer("bad-method", f"the method {request.method} is not allowed here", error.headers)
    return answer("bad-request", error.detail, error.headers)
