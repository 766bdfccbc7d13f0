"""Average Lagging: by how many source words the output is behind the speaker."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from stacl.metrics._batch import PathBatch
from stacl.metrics.base import PathMetric


def average_lagging(delays: Sequence[float], source_length: float, target_length: float) -> float | None:
    """Ma et al. 2019 (STACL).

    AL = 1/tau * sum_{t=1..tau} [ g(t) - (t-1) * |x|/Y ],  tau = min { t : g(t) = |x| }, or |y| if none

    The ideal output has word t after (t-1)|x|/Y source words. AL is the mean lag behind that line, up to the first
    target word that has seen the whole source. A system ahead of the line has a negative AL.

    >>> average_lagging([3, 4, 5, 6, 6, 6], 6, 6)
    3.0
    """
    if not delays or source_length <= 0 or target_length <= 0:
        return None
    tau = min(bisect_left(delays, source_length) + 1, len(delays))
    pace = source_length / target_length
    # tau * (tau - 1) / 2 is the sum of (t-1) for t = 1..tau.
    return (sum(delays[:tau]) - pace * (tau * (tau - 1) // 2)) / tau


def lagging_batch(batch: PathBatch, target_lengths: np.ndarray) -> np.ndarray:
    return batch.lagging(np.minimum(batch.before_the_end + 1, batch.lengths), target_lengths)


class AL(PathMetric):
    name = "AL"
    also_reference = True  # SimulEval's default uses the reference length
    batch = staticmethod(lagging_batch)
    compute = staticmethod(average_lagging)
