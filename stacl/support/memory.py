"""Settings of the memory allocator for training."""

from __future__ import annotations

import ctypes
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4  # parameters of glibc's mallopt


def keep_memory() -> bool:
    """Make the C library keep freed memory for the next tensor. Return True if it can (glibc).

    By default glibc requests memory for every large tensor from the kernel and returns it at once. The kernel then
    zeroes the same pages each time, which takes about a tenth of a CPU training step.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # the C library is not glibc
        return False
    settings = ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, 2**30), (_TOP_PAD, 2**26))
    accepted = [mallopt(name, value) == 1 for name, value in settings]
    return all(accepted)
