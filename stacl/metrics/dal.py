"""Differentiable Average Lagging: a lag once incurred cannot be caught up later."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stacl.metrics._batch import PathBatch
from stacl.metrics.base import PathMetric


def differentiable_average_lagging(delays: Sequence[float], source_length: float, target_length: float) -> float | None:
    """Cherry and Foster 2019; Arivazhagan et al. 2019.

    DAL = 1/|y| * sum_{t=1..|y|} [ g'(t) - (t-1) * |x|/|y| ]
    g'(1) = g(1),  g'(t) = max(g(t), g'(t-1) + |x|/|y|)

    Every written word takes |x|/|y| of the speaker's time. With h(t) = g'(t) - (t-1)|x|/|y|,
    h(t) = max(g(t) - (t-1)|x|/|y|, h(t-1)): DAL is the mean of the running maximum of the lag.

    >>> differentiable_average_lagging([3, 4, 5, 6, 6, 6], 6, 6)
    3.0
    """
    if not delays or source_length <= 0:
        return None
    pace = source_length / len(delays)
    worst, total = delays[0], 0.0
    for t, delay in enumerate(delays):
        lag = delay - t * pace
        if lag > worst:
            worst = lag
        total += worst
    return total / len(delays)


def lagging_batch(batch: PathBatch, target_lengths: np.ndarray) -> np.ndarray:
    lags = batch.delays - batch.steps * (batch.source / batch.lengths)[:, None]
    return batch.total(np.maximum.accumulate(lags, axis=1)) / batch.lengths


class DAL(PathMetric):
    name = "DAL"
    batch = staticmethod(lagging_batch)
    compute = staticmethod(differentiable_average_lagging)
