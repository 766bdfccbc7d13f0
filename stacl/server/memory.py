"""Returning freed memory to the operating system."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable


def trim() -> None:
    """Return freed memory to the system. glibc keeps it otherwise: hundreds of megabytes after a busy hour."""
    malloc_trim = _malloc_trim()
    if malloc_trim is not None:
        malloc_trim(0)


@functools.cache
def _malloc_trim() -> Callable[[int], int] | None:
    """malloc_trim of glibc. Other C libraries (musl, macOS, Windows) have no such function and keep less."""
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
    found.argtypes, found.restype = [ctypes.c_size_t], ctypes.c_int
    malloc_trim: Callable[[int], int] = found
    return malloc_trim
