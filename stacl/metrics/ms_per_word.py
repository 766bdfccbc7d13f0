"""The computing time per written word."""

from __future__ import annotations

from collections.abc import Sequence

from stacl.metrics.base import LatencyMetric, Score, SentenceTiming


def compute_per_word(delays: Sequence[float], compute_ms: float, target_length: float) -> float | None:
    """ms_per_word = computing time in milliseconds / |y|; over a corpus the ratio of the sums.

    >>> compute_per_word([1, 2], 50.0, 2)
    25.0
    """
    return compute_ms / target_length if delays and compute_ms > 0 else None


class MsPerWord(LatencyMetric):
    name = "ms_per_word"

    def scores(self) -> list[Score]:
        def value(sentence: SentenceTiming) -> float | None:
            return compute_per_word(sentence.delays, sentence.compute_ms, len(sentence.delays))

        return [Score(self.name, value, "hypothesis", "clock", weight=lambda sentence: len(sentence.delays))]
