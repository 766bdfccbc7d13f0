"""Vectorised metrics: a padded array of delays for corpora of millions of sentences.

The plain function in a metric's file defines it; its `batch` computes the same with arrays. The contract test compares
both on random paths, for every file that has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import chain

import numpy as np

CELLS = 100_000  # of the array: large enough to be fast, small enough for the processor's cache


class PathBatch:
    """Sentences with a non-empty source and output, and either all or none with a reference length.

    Shapes: B sentences; T is one more than the longest output. Rows are padded with infinity.
    """

    def __init__(
        self, delays: Sequence[Sequence[float]], source_lengths: Sequence[float], references: Sequence[float]
    ) -> None:
        self.lengths = np.fromiter(map(len, delays), np.int64, len(delays))  # (B,) |y|
        self.source = np.asarray(source_lengths, dtype=float)  # (B,) |x|
        self.reference = np.asarray(references, dtype=float)  # (B,) or empty
        self.steps = np.arange(int(self.lengths.max()) + 1)  # (T,) t-1
        self.written = self.steps < self.lengths[:, None]  # (B, T) False in the padding
        self.delays = np.full(self.written.shape, np.inf)  # (B, T) g(t)
        self.delays[self.written] = np.fromiter(chain.from_iterable(delays), float, int(self.lengths.sum()))

    @cached_property
    def rows(self) -> np.ndarray:
        return np.arange(len(self.lengths))

    @cached_property
    def sums(self) -> np.ndarray:
        """(B, T) g(1) + ... + g(t)."""
        return np.cumsum(self.delays, axis=1)

    @cached_property
    def before_the_end(self) -> np.ndarray:
        """(B,) the number of words written before the end of the source."""
        return np.count_nonzero(self.delays < self.source[:, None], axis=1)

    @cached_property
    def previous(self) -> np.ndarray:
        """(B, T) g(t-1), with g(0) = 0."""
        shifted = np.empty_like(self.delays)
        shifted[:, 0] = 0.0
        shifted[:, 1:] = self.delays[:, :-1]
        return shifted

    @cached_property
    def waits(self) -> np.ndarray:
        """(B, T) CW(t), 0 in the padding."""
        found = np.zeros_like(self.delays)
        return np.subtract(self.delays, self.previous, out=found, where=self.written)

    @cached_property
    def last(self) -> np.ndarray:
        """(B,) g(|y|)."""
        return self.delays[self.rows, self.lengths - 1]

    def total(self, values: np.ndarray) -> np.ndarray:
        """(B,) the sum over the written words, without padding."""
        return np.where(self.written, values, 0.0).sum(axis=1)

    def lagging(self, tau: np.ndarray, target_lengths: np.ndarray) -> np.ndarray:
        """(B,) the mean lag of the first tau words behind the ideal line; NaN where tau is 0."""
        summed = self.sums[self.rows, np.maximum(tau, 1) - 1]
        ideal = self.source / target_lengths * (tau * (tau - 1) // 2)
        return np.where(tau > 0, (summed - ideal) / np.maximum(tau, 1), np.nan)
