"""Yet Another Average Lagging: LAAL over the words that were written before the end of the source."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from stacl.metrics._batch import PathBatch
from stacl.metrics.base import PathMetric


def yet_another_average_lagging(delays: Sequence[float], source_length: float, target_length: float) -> float | None:
    """Polák et al. 2025.

    YAAL = 1/tau * sum_{t=1..tau} [ g(t) - (t-1) * |x|/Y ],  tau = max { t : g(t) < |x| },  Y = max(|y|, |y*|)

    It is undefined if nothing was written before the end of the source.

    >>> yet_another_average_lagging([3, 4, 5, 6, 6, 6], 6, 6)
    3.0
    """
    if not delays or source_length <= 0 or target_length <= 0:
        return None
    tau = bisect_left(delays, source_length)
    if tau == 0:
        return None
    pace = source_length / target_length
    return (sum(delays[:tau]) - pace * (tau * (tau - 1) // 2)) / tau


def lagging_batch(batch: PathBatch, target_lengths: np.ndarray) -> np.ndarray:
    return batch.lagging(batch.before_the_end, target_lengths)


class YAAL(PathMetric):
    name = "YAAL"
    length = "longer"
    batch = staticmethod(lagging_batch)
    compute = staticmethod(yet_another_average_lagging)
