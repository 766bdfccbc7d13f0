"""Limits for one client and for all clients together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from stacl.support.errors import UserError, suggest


def _limit(default: float, sentence: str) -> Any:
    return field(default=default, metadata={"doc": sentence})


@dataclass(frozen=True)
class Limits:
    """Every limit with its default and a description. `--limit NAME=N` sets one."""

    sessions: int = _limit(500, "sessions, including disconnected ones that can be resumed")
    connections: int = _limit(1000, "open connections of any kind; further ones are closed at once")
    tracks: int = _limit(8, "policies side by side in one session; the page uses 6")
    idle_seconds: float = _limit(300.0, "a session that receives nothing for this time ends")
    resume_seconds: float = _limit(60.0, "how long a disconnected session can be resumed")
    start_seconds: float = _limit(10.0, "a connection without a request after this time is closed")
    stall_seconds: float = _limit(30.0, "a client that does not read for this time is disconnected; it may resume")
    drain_seconds: float = _limit(10.0, "on shutdown: time to finish pending output")
    align_seconds: float = _limit(5.0, "after `close` and the last word: time to wait for alignments")
    message_bytes: int = _limit(65_536, "longest message")
    messages_per_second: float = _limit(100.0, "messages per second of one connection, on average")
    message_burst: int = _limit(200, "messages of one connection in a burst")
    queued_characters: int = _limit(65_536, "text received and not yet translated; above it the server stops reading")
    sentence_words: int = _limit(400, "maximum length of a sentence; a longer one is cut")
    unsent_events: int = _limit(1000, "messages waiting for a slow client; above it the server stops translating")
    kept_events: int = _limit(5000, "latest messages kept for a client that resumes")
    kept_bytes: int = _limit(524_288, "total size of the kept messages")
    request_bytes: int = _limit(102_400, "longest body of a request to /translate")
    requests: int = _limit(16, "requests to /translate at the same time")
    request_seconds: float = _limit(600.0, "a request to /translate that takes longer is cancelled")

    def for_clients(self) -> dict[str, float]:
        """The limits that `started` and `resumed` contain."""
        names = "message_bytes messages_per_second message_burst tracks sentence_words idle_seconds resume_seconds"
        return {name: getattr(self, name) for name in names.split()}

    @classmethod
    def parse(cls, changes: Iterable[str]) -> Limits:
        """Limits from NAME=NUMBER arguments.

        >>> Limits.parse(["sessions=20", "idle_seconds=0.5"]).sessions
        20
        """
        kinds: dict[str, Any] = {item.name: type(item.default) for item in fields(cls)}
        values: dict[str, Any] = {}
        for change in changes:
            name, _, number = change.partition("=")
            if name not in kinds:
                raise UserError(f"unknown limit {name!r}{suggest(name, kinds)}")
            try:
                values[name] = kinds[name](number)
            except ValueError:
                values[name] = 0
            if not 0 < values[name] < float("inf"):
                needed = "a whole number" if kinds[name] is int else "a number"
                raise UserError(f"--limit {name}=N needs {needed} above 0, not {number!r}")
        return cls(**values)


def describe() -> str:
    """All limits, for the help page."""
    return "\n".join(f"  {f'{item.name}={item.default:g}':<26} {item.metadata['doc']}" for item in fields(Limits))
