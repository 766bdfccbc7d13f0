"""The files of the page, read once: what a server shows is always of its own version."""

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
# Said here because the tables of some systems have no, or a wrong, type for them.
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Page(NamedTuple):
    content: bytes
    kind: str
    tag: str  # of its content: a browser asks each time whether it still has the right one


def load_pages(folder: Path = FOLDER) -> dict[str, Page]:
    """By path, `/` for index.html."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found[f"/{path.relative_to(folder).as_posix()}"] = Page(content, kind, tag)
    if "/index.html" in found:
        found["/"] = found["/index.html"]
    return found


def routes() -> list[Route]:
    """A route for each file."""
    return [Route(path, _endpoint(page)) for path, page in load_pages().items()]


def _endpoint(page: Page) -> Callable[[Request], Awaitable[Response]]:
    headers = {"Cache-Control": "no-cache", "ETag": page.tag}

    async def show(request: Request) -> Response:
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if page.tag in known:
            return Response(status_code=304, headers=headers)
        return Response(page.content, media_type=page.kind, headers=headers)

    return show
