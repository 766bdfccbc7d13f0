"""Normalised erasure: the number of removed words of a re-translating system per word of its final output."""

from __future__ import annotations

from collections.abc import Sequence

from stacl.metrics.base import LatencyMetric, Score, SentenceTiming


def normalised_erasure(delays: Sequence[float], erased: float, target_length: float) -> float | None:
    """Arivazhagan et al. 2020.

    NE = (shown target units that were removed later) / |y|; 0 for an append-only system

    >>> normalised_erasure([1, 2, 3, 3], 2, 4)
    0.5
    """
    return erased / target_length if delays else None


class NE(LatencyMetric):
    name = "NE"

    def scores(self) -> list[Score]:
        def value(sentence: SentenceTiming) -> float | None:
            if sentence.erased is None:
                return None
            return normalised_erasure(sentence.delays, sentence.erased, len(sentence.delays))

        return [Score(self.name, value, "hypothesis", "revisions")]
