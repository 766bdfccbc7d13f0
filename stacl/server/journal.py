"""The server's log. It never contains user text, tokens or session keys."""

from __future__ import annotations

import logging
import time
import traceback

log = logging.getLogger("stacl.server")
_AGAIN = 60.0  # seconds before the same refusal is logged again
# uvicorn's line about a refused websocket. `refused` logs the reason instead.
_NOISE = "ASGI callable returned without completing handshake."
_last: dict[str, float] = {}  # when each refusal was last logged


def place(error: BaseException) -> str:
    """The type of an error and where it happened. Its message is left out because it may quote user text."""
    frames = traceback.extract_tb(error.__traceback__)
    return type(error).__name__ + (f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else "")


def failed(what: str, error: BaseException) -> None:
    log.error("%s failed: %s", what, place(error))


def refused(code: str, message: str) -> None:
    """Log why a websocket was refused, because browsers hide the reason from the page."""
    now = time.monotonic()
    if now - _last.get(code, -_AGAIN) >= _AGAIN:
        _last[code] = now
        log.warning("refused a websocket: %s: %s", code, message)


class Formatter(logging.Formatter):
    """One line per record. An exception is reduced to its type and place."""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        line = f"stacl serve: {record.getMessage().strip()}"
        return f"{line}: {place(error)}" if error else line


def configure() -> None:
    """Send warnings and errors of stacl, uvicorn and asyncio to stderr."""
    handler = logging.StreamHandler()
    handler.setFormatter(Formatter())
    handler.addFilter(lambda record: record.getMessage() != _NOISE)
    for name in ("stacl.server", "uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.WARNING)
