"""The static files of the page. They are read into memory at start, so they always match the running server.

starlette's StaticFiles reads from disk on a thread for every request: 281 to 498 us a file, against 12 to 17 us here.
Its ETag depends on the installation time, not on the content.
"""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDER = Path(__file__).with_name("static")
# The MIME tables of some systems lack these types or have wrong ones.
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class StaticFile(NamedTuple):
    content: bytes
    kind: str
    tag: str  # ETag, a hash of the content: browsers revalidate on every load


def load_files(folder: Path = FOLDER) -> dict[str, StaticFile]:
    """All files by URL path; `/` is index.html."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found[f"/{path.relative_to(folder).as_posix()}"] = StaticFile(content, kind, tag)
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found


def routes() -> list[Route]:
    """A route for each file."""
    return [Route(path, _endpoint(file)) for path, file in load_files().items()]


def _endpoint(file: StaticFile) -> Callable[[Request], Awaitable[Response]]:
    headers = {"Cache-Control": "no-cache", "ETag": file.tag}

    async def show(request: Request) -> Response:
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if file.tag in known:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.kind, headers=headers)

    return show
