"""The settings of a server."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field

from stacl.server.limits import Limits
from stacl.support.errors import UserError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_ORIGIN = re.compile(r"(?P<scheme>https?)://(?P<host>[\w.-]+|\[[0-9a-f:.]+\])(:(?P<port>\d{1,5}))?/?", re.IGNORECASE)
_DEFAULT_PORTS = {"http": 80, "https": 443}


def default_workers() -> int:
    """The number of worker threads: one per core, at most 4, because one event loop cannot feed more."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(4, cores)


@dataclass(frozen=True)
class Settings:
    limits: Limits = field(default_factory=Limits)
    token: str | None = None  # required from clients; None: no token needed
    token_is_secret: bool = True  # chosen by the user and never printed; False: generated for this run
    origins: tuple[str, ...] = ()  # other web pages that may use the server, normalised as browsers send them
    hosts: tuple[str, ...] | None = LOOPBACK  # allowed in the Host header; None: any
    workers: int = field(default_factory=default_workers)

    def __post_init__(self) -> None:
        object.__setattr__(self, "origins", tuple(map(_normalised_origin, self.origins)))


def _normalised_origin(origin: str) -> str:
    """The origin as a browser sends it: lower-case ASCII, without the default port."""
    found = _ORIGIN.fullmatch(origin)
    if not found or int(found["port"] or 0) > 65_535:
        raise UserError(f"--allow-origin needs a scheme and a host, such as https://example.org, not {origin!r}")
    scheme, host = found["scheme"].lower(), found["host"].lower()
    port = int(found["port"] or _DEFAULT_PORTS[scheme])
    try:
        if host.startswith("["):
            host = f"[{ipaddress.IPv6Address(host[1:-1]).compressed}]"
        elif not host.isascii():
            host = _in_ascii(host)
    except ValueError as error:
        raise UserError(f"--allow-origin {origin!r} has an invalid host: {error}") from None
    return f"{scheme}://{host}" if port == _DEFAULT_PORTS[scheme] else f"{scheme}://{host}:{port}"


def _in_ascii(host: str) -> str:
    """bücher.example -> xn--bcher-kva.example by UTS 46, as browsers do. Python's own codec is older."""
    try:
        import idna
    except ImportError:
        raise UserError("idna is not installed; install stacl[serve]") from None
    return idna.encode(host, uts46=True).decode()
