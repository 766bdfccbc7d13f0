"""The longest Consecutive Wait of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from operator import sub

import numpy as np

from stacl.metrics._batch import PathBatch
from stacl.metrics.base import PathMetric


def longest_wait(delays: Sequence[float], source_length: float, target_length: float) -> float | None:
    """CW_max = max_t [ g(t) - g(t-1) ],  g(0) = 0; undefined if nothing was read, as CW.

    >>> longest_wait([2, 2, 5], 6, 3)
    3
    """
    if not delays or delays[-1] <= 0:
        return None
    return max(delays[0], max(map(sub, delays[1:], delays), default=0))


def longest_wait_batch(batch: PathBatch, target_lengths: np.ndarray) -> np.ndarray:
    longest = batch.waits.max(axis=1)
    return np.where(longest > 0, longest, np.nan)


class CWMax(PathMetric):
    name = "CW_max"
    length = "none"
    also_clock = False
    batch = staticmethod(longest_wait_batch)
    compute = staticmethod(longest_wait)
