"""Average Proportion: the mean share of the source that was read before each target word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stacl.metrics._batch import PathBatch
from stacl.metrics.base import PathMetric


def average_proportion(delays: Sequence[float], source_length: float, target_length: float) -> float | None:
    """Cho and Esipova 2016.

    AP = 1 / (|x| Y) * sum_{t=1..|y|} g(t)

    With the hypothesis length it is between 0 and 1. With the reference length a long output exceeds 1.

    >>> average_proportion([1, 2, 3, 4], 4, 4)  # wait-1 over n words: (n+1)/2n
    0.625
    """
    if not delays or source_length <= 0 or target_length <= 0:
        return None
    return sum(delays) / (source_length * target_length)


def proportion_batch(batch: PathBatch, target_lengths: np.ndarray) -> np.ndarray:
    return batch.sums[batch.rows, batch.lengths - 1] / (batch.source * target_lengths)


class AP(PathMetric):
    name = "AP"
    also_reference = True
    batch = staticmethod(proportion_batch)
    compute = staticmethod(average_proportion)
