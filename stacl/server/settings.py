"""How a server is set up."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from stacl.server.limits import Limits

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def default_workers() -> int:
    """Threads that compute: one a core, and no more than the event loop's thread can keep busy."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(4, cores)


@dataclass(frozen=True)
class Settings:
    limits: Limits = field(default_factory=Limits)
    token: str | None = None  # what a client must know; None: nothing
    token_is_secret: bool = True  # somebody chose it; else it was made up for this run, and must be told
    origins: tuple[str, ...] = ()  # of other web pages that may use the server
    hosts: tuple[str, ...] | None = LOOPBACK  # names that the server may be called by; None: any
    workers: int = field(default_factory=default_workers)
