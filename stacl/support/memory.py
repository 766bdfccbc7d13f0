"""What the machine is asked to do differently while it trains."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # names of glibc's mallopt


def keep_memory() -> bool:
    """Have freed memory kept for the next tensor, instead of given back: True if the machine's library can.

    By default the C library of Linux takes every large tensor fresh from the kernel and gives it back at once.
    The kernel then zeroes the same pages over and over: about a tenth of the time of a CPU training step.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library than glibc
        return False
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, 2**30), (_TOP_PAD, 2**26))
    return sum(mallopt(name, value) for name, value in settings) == len(settings)
