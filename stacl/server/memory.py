"""What a process has and does not need any more, back to the machine."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable


def give_back() -> None:
    """The C library keeps what was freed, hundreds of megabytes after a busy hour; where it can be told, it is."""
    trim = _trim()
    if trim is not None:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    """Of glibc; other libraries (musl, macOS, Windows) have no such function, and keep less."""
    try:
        found = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
    found.argtypes, found.restype = [ctypes.c_size_t], ctypes.c_int
    trim: Callable[[int], int] = found
    return trim
