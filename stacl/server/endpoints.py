"""What is asked for and answered at once: /translate, /models, /health, /metrics."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from stacl.server.oneshot import Translation
from stacl.server.protocol import Refusal, safe_policy
from stacl.server.security import answer
from stacl.support import plugins, validation
from stacl.support.errors import UserError, suggest
from stacl.support.version import __version__

if TYPE_CHECKING:
    from stacl.server.hub import Hub

_FIELDS = ("model", "policy", "text", "beam", "ahead", "segment")
_WIDEST_BEAM = 8
_FARTHEST_AHEAD = 8  # pieces


class Endpoints:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    async def health(self, request: Request) -> Response:
        if self._hub.stopping:
            return JSONResponse({"status": "stopping"}, 503)
        return JSONResponse({"status": "ok"})

    async def models(self, request: Request) -> Response:
        found = [
            {
                "name": name,
                "source": model.source_language.code,
                "target": model.target_language.code,
                "policy": str(model.policy),
            }
            for name, model in self._hub.models.items()
        ]
        return JSONResponse(
            {"models": found, "policies": plugins.names("policies"), "version": __version__},
        )

    async def metrics(self, request: Request) -> Response:
        hub = self._hub
        text = hub.metrics.text(
            sessions_open=len(hub.sessions),
            connections_open=len(hub.connections),
            queue_length=hub.workers.waiting,
        )
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    async def live(self, request: Request) -> Response:
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
        return answer("upgrade-required", "/live is a websocket; see docs/api.md", upgrade)

    async def translate(self, request: Request) -> Response:
        hub = self._hub
        if hub.stopping:
            return answer("shutdown", "the server is shutting down; come back later", {"Retry-After": "10"})
        if hub.requests >= hub.limits.requests:
            hub.metrics.add("refused", reason="busy")
            message = f"{hub.limits.requests} requests are in progress; try again soon"
            return answer("busy", message, {"Retry-After": "1"})
        hub.requests += 1
        hub.metrics.add("requests")
        try:
            return await self._translate(request)
        except Refusal as refusal:
            hub.metrics.add("refused", reason=refusal.code)
            return answer(refusal.code, refusal.message)
        except UserError as error:
            hub.metrics.add("refused", reason="bad-request")
            return answer("bad-request", str(error))
        except ClientDisconnect:
            return answer("gone", "the request was not finished")
        finally:
            hub.requests -= 1

    async def _translate(self, request: Request) -> Response:
        hub, limits = self._hub, self._hub.limits
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return answer("bad-type", f"expected Content-Type: application/json, not {kind[:60]!r}")
        body = await _body(request, limits.request_bytes, limits.start_seconds)
        asked = _checked(body)
        beam, ahead = asked.get("beam", 1), asked.get("ahead", 0)
        _check_price(asked["text"], beam, ahead, limits.request_bytes)
        name, translator = hub.model(asked.get("model"))
        policy = safe_policy(asked["policy"]) if "policy" in asked else translator.policy
        job = Translation(
            translator,
            policy,
            asked["text"],
            beam=beam,
            ahead=ahead,
            segment=asked.get("segment", True),
            longest=limits.sentence_words,
        )
        hub.texts.wake(job)
        found = await _unless_gone(request, job, hub.over, limits.request_seconds)
        return JSONResponse({"model": name, "policy": str(policy)} | found)


async def _body(request: Request, most: int, seconds: float) -> bytes:
    """The body. Who sends it a byte at a time is not waited for."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > most:
                    raise Refusal("too-large", f"a request has at most {most} bytes; send parts")
    except TimeoutError:
        raise Refusal("too-slow", f"the body of the request did not come within {seconds:g} seconds") from None
    return b"".join(parts)


async def _unless_gone(request: Request, job: Translation, over: asyncio.Event, seconds: float) -> dict[str, Any]:
    """The translation; if the client goes before, or its time or the server's is over, the work is given up."""

    async def gone() -> None:
        while not await request.is_disconnected():
            await asyncio.sleep(0.5)

    watching: list[asyncio.Future[Any]] = [asyncio.create_task(gone()), asyncio.create_task(over.wait())]
    try:
        done, _ = await asyncio.wait((job.result, *watching), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if job.result.done():
            return job.result.result()
        if not done:
            raise Refusal("too-long", f"the text was not translated within {seconds:g} seconds; send parts")
        if over.is_set():
            raise Refusal("shutdown", "the server is shutting down; not all has been translated")
        raise ClientDisconnect
    finally:
        job.cancel()
        for task in watching:
            task.cancel()


def _check_price(text: str, beam: int, ahead: int, most: int) -> None:
    """A wide beam and a far look take as much longer: who asks for them sends less, or others would wait for hours."""
    allowed = most // (beam * (1 + ahead))
    if len(text.encode("utf-8", "surrogatepass")) > allowed:
        raise Refusal("too-large", f"with beam {beam} and ahead {ahead} a text has at most {allowed} bytes; send parts")


def _checked(body: bytes) -> dict[str, Any]:
    """The fields of a request, each as it should be."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise UserError("expected a JSON object, and this is no JSON") from None
    if not isinstance(found, dict):
        raise UserError(f"expected a JSON object, not a {type(found).__name__}")
    strange = found.keys() - set(_FIELDS)
    if strange:
        name = min(strange)
        raise UserError(f"a request has no field {name!r}{suggest(name, _FIELDS)}")
    asked = {name: value for name, value in found.items() if value is not None}
    for name in ("model", "policy"):
        if name in asked:
            validation.string(name, asked[name])
    validation.string("text", found.get("text"))
    if not 1 <= validation.whole("beam", asked.get("beam", 1)) <= _WIDEST_BEAM:
        raise UserError(f"beam goes from 1 to {_WIDEST_BEAM}, not {asked['beam']}")
    if not 0 <= validation.whole("ahead", asked.get("ahead", 0)) <= _FARTHEST_AHEAD:
        raise UserError(f"ahead goes from 0 to {_FARTHEST_AHEAD}, not {asked['ahead']}")
    validation.boolean("segment", asked.get("segment", True))
    return asked
