"""Consecutive Wait: the mean number of source words read in a row between two writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stacl.metrics._batch import PathBatch
from stacl.metrics.base import PathMetric


def consecutive_wait(delays: Sequence[float], source_length: float, target_length: float) -> float | None:
    """Gu et al. 2017, as in STACL.

    CW = sum_t CW(t) / #{ t : CW(t) > 0 },  CW(t) = g(t) - g(t-1),  g(0) = 0

    The waits sum to g(|y|), and their number is that of the distinct delays above zero. It is undefined for an output
    that read nothing. Source words read after the last written word do not count.

    >>> consecutive_wait([2, 2, 5], 6, 3)
    2.5
    """
    if not delays or delays[-1] <= 0:
        return None
    waits = len(set(delays)) - (delays[0] == 0)
    return delays[-1] / waits


def wait_batch(batch: PathBatch, target_lengths: np.ndarray) -> np.ndarray:
    waits = np.count_nonzero(batch.waits, axis=1)
    return np.where(waits > 0, batch.last / np.maximum(waits, 1), np.nan)


class CW(PathMetric):
    name = "CW"
    length = "none"
    also_clock = False  # in milliseconds every word would be a separate wait
    batch = staticmethod(wait_batch)
    compute = staticmethod(consecutive_wait)
