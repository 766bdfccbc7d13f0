"""The plain HTTP endpoints: /translate, /models, /health, /metrics."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from stacl.decoding.options import BEST, Decoding
from stacl.server.oneshot import Translation
from stacl.server.protocol import Refusal, explain, safe_policy
from stacl.server.security import answer
from stacl.support import plugins
from stacl.support.errors import UserError, suggest
from stacl.support.version import __version__

if TYPE_CHECKING:
    from stacl.server.hub import Hub

_WIDEST_BEAM = 8
_FARTHEST_AHEAD = 8  # pieces
_POLICY = "full"  # the default: the whole text has arrived


class TranslateRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request to /translate. A field that is null takes its default."""

    text: str
    model: str | None = None
    policy: str | None = None
    beam: Annotated[int, msgspec.Meta(ge=1, le=_WIDEST_BEAM)] | None = None
    ahead: Annotated[int, msgspec.Meta(ge=0, le=_FARTHEST_AHEAD)] | None = None
    segment: bool | None = None

    def decoding(self, request_bytes: int) -> Decoding:
        """The beam and look-ahead. A wider search takes longer, so the limit on the text shrinks by the same factor.

        The default beam is 5, or the widest that the length of the text allows.
        """
        size, ahead = len(self.text.encode("utf-8", "surrogatepass")), self.ahead or 0
        beam = self.beam or max(2 if ahead else 1, min(BEST.beam, request_bytes // (max(size, 1) * (1 + ahead))))
        allowed = request_bytes // (beam * (1 + ahead))
        if size > allowed:
            message = f"with beam {beam} and ahead {ahead} a text has at most {allowed} bytes; send it in parts"
            raise Refusal("too-large", message)
        return Decoding(beam=beam, ahead=ahead)


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
                "policy": str(model.live_policy),
            }
            for name, model in self._hub.models.items()
        ]
        return JSONResponse(
            {"models": found, "policies": plugins.names("policies"), "version": __version__},
        )

    async def metrics(self, request: Request) -> Response:
        return PlainTextResponse(self._hub.metrics.text(), media_type="text/plain; version=0.0.4")

    async def live(self, request: Request) -> Response:
        upgrade = {"Upgrade": "websocket", "Connection": "Upgrade"}
        return answer("upgrade-required", "/live is a websocket; see docs/api.md", upgrade)

    async def translate(self, request: Request) -> Response:
        hub = self._hub
        if hub.stopping:
            return answer("shutdown", "the server is shutting down; try again later", {"Retry-After": "10"})
        if hub.requests >= hub.limits.requests:
            hub.metrics.add("refused", reason="busy")
            message = f"{hub.limits.requests} requests are in progress; try again later"
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
            return answer("gone", "the client disconnected before the end of the request")
        finally:
            hub.requests -= 1

    async def _translate(self, request: Request) -> Response:
        hub, limits = self._hub, self._hub.limits
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return answer("bad-type", f"expected Content-Type: application/json, not {kind[:60]!r}")
        body = await _body(request, limits.request_bytes, limits.start_seconds)
        wanted = _decoded(body)
        decoding = wanted.decoding(limits.request_bytes)
        name, translator = hub.model(wanted.model)
        policy = safe_policy(_POLICY if wanted.policy is None else wanted.policy)
        segment = wanted.segment is not False
        job = Translation(
            translator, policy, wanted.text, decoding=decoding, segment=segment, longest=limits.sentence_words
        )
        hub.texts.wake(job)
        found = await _await_result(request, job, hub.over, limits.request_seconds)
        return JSONResponse({"model": name, "policy": str(policy), "beam": decoding.beam} | found)


async def _body(request: Request, most: int, seconds: float) -> bytes:
    """The body of a request. Its total time is limited, because a client may send it a byte at a time."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                parts.append(part)
                size += len(part)
                if size > most:
                    raise Refusal("too-large", f"a request has at most {most} bytes; send it in parts")
    except TimeoutError:
        raise Refusal("too-slow", f"the body of the request did not arrive within {seconds:g} seconds") from None
    return b"".join(parts)


async def _await_result(request: Request, job: Translation, over: asyncio.Event, seconds: float) -> dict[str, Any]:
    """The translation. Cancels the work when the client disconnects, the time is up or the server stops."""

    async def gone() -> None:
        while not await request.is_disconnected():
            await asyncio.sleep(0.5)

    watching: list[asyncio.Future[Any]] = [asyncio.create_task(gone()), asyncio.create_task(over.wait())]
    try:
        done, _ = await asyncio.wait((job.result, *watching), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if job.result.done():
            return job.result.result()
        if not done:
            raise Refusal("too-long", f"the text was not translated within {seconds:g} seconds; send it in parts")
        if over.is_set():
            raise Refusal("shutdown", "the server is shutting down; the text was not translated completely")
        raise ClientDisconnect
    finally:
        job.cancel()
        for task in watching:
            task.cancel()


def _decoded(body: bytes) -> TranslateRequest:
    """The request. Parsed by `json`, because msgspec's parser rejects half of a surrogate pair."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise UserError("expected a JSON object; this is not valid JSON") from None
    if not isinstance(found, dict):
        raise UserError(f"expected a JSON object, not a {type(found).__name__}")
    known = TranslateRequest.__struct_fields__
    unknown = found.keys() - set(known)
    if unknown:
        name = min(unknown)
        raise UserError(f"a request has no field {name!r}{suggest(name, known)}")
    try:
        return msgspec.convert(found, TranslateRequest)
    except msgspec.ValidationError as error:
        raise UserError(explain("request", error)) from None
