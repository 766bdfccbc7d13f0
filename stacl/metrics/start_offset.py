"""Start offset: the delay of the first target word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stacl.metrics._batch import PathBatch
from stacl.metrics.base import PathMetric


def start_offset(delays: Sequence[float], source_length: float, target_length: float) -> float | None:
    """StartOffset = g(1)

    >>> start_offset([3, 4, 5], 5, 3)
    3
    """
    return delays[0] if delays else None


def start_batch(batch: PathBatch, target_lengths: np.ndarray) -> np.ndarray:
    return batch.delays[:, 0]


class StartOffset(PathMetric):
    name = "StartOffset"
    length = "none"
    batch = staticmethod(start_batch)
    compute = staticmethod(start_offset)
