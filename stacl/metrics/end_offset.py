"""End offset: how much of the source was unread when the last word was written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stacl.metrics._batch import PathBatch
from stacl.metrics.base import PathMetric


def end_offset(delays: Sequence[float], source_length: float, target_length: float) -> float | None:
    """EndOffset = g(|y|) - |x|: 0 if the last word has seen the whole source, else negative.

    >>> end_offset([1, 2, 3], 6, 3)
    -3
    """
    return delays[-1] - source_length if delays else None


def end_batch(batch: PathBatch, target_lengths: np.ndarray) -> np.ndarray:
    return batch.last - batch.source


class EndOffset(PathMetric):
    name = "EndOffset"
    length = "none"
    batch = staticmethod(end_batch)
    compute = staticmethod(end_offset)
