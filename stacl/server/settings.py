"""How a server is set up."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field

from stacl.server.limits import Limits
from stacl.support.errors import UserError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<host>[\w.-]+|\[[0-9a-f:.]+\])(:(?P<port>\d{1,5}))?/?", re.IGNORECASE)
_USUAL_PORTS = {"http": 80, "https": 443}


def default_workers() -> int:
    """Threads that compute: one a core, and no more than the event loop's thread can keep busy."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(4, cores)


@dataclass(frozen=True)
class Settings:
    limits: Limits = field(default_factory=Limits)
    token: str | None = None  # what a client must know; None: nothing
    token_is_secret: bool = True  # somebody chose it; else it was made up for this run, and must be told
    origins: tuple[str, ...] = ()  # of other web pages that may use the server, as browsers write them
    hosts: tuple[str, ...] | None = LOOPBACK  # names that the server may be called by; None: any
    workers: int = field(default_factory=default_workers)

    def __post_init__(self) -> None:
        object.__setattr__(self, "origins", tuple(map(_as_browsers_write, self.origins)))


def _as_browsers_write(origin: str) -> str:
    """What a page of this address says of itself: small letters of ASCII, and no port where it is the usual one."""
    found = _ORIGIN.fullmatch(origin)
    if not found or int(found["port"] or 0) > 65_535:
        raise UserError(f"--allow-origin needs a scheme and a host, such as https://example.org, not {origin!r}")
    scheme, host = found["scheme"].lower(), found["host"].lower()
    port = int(found["port"] or _USUAL_PORTS[scheme])
    try:
        if host.startswith("["):
            host = f"[{ipaddress.IPv6Address(host[1:-1]).compressed}]"
        elif not host.isascii():
            host = _in_ascii(host)
    except ValueError as error:
        raise UserError(f"--allow-origin {origin!r} names no host: {error}") from None
    return f"{scheme}://{host}" if port == _USUAL_PORTS[scheme] else f"{scheme}://{host}:{port}"


def _in_ascii(host: str) -> str:
    """bücher.example -> xn--bcher-kva.example, by the rules of today's browsers, which Python's own are not."""
    try:
        import idna
    except ImportError:
        raise UserError("idna is not installed; install stacl[serve]") from None
    return idna.encode(host, uts46=True).decode()
