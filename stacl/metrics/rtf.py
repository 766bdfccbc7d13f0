"""Real-time factor: below 1 the system keeps up with the speaker."""

from __future__ import annotations

from collections.abc import Sequence

from stacl.metrics.base import LatencyMetric, Score, SentenceTiming


def real_time_factor(delays: Sequence[float], source_ms: float, compute_ms: float) -> float | None:
    """RTF = computing time / duration of the source; over a corpus the ratio of the sums.

    SimulEval's RTF is a different number: g(|y|)/|x|, the share of the source that the last word has seen.

    >>> real_time_factor([1, 2], 4000.0, 100.0)
    0.025
    """
    return compute_ms / source_ms if source_ms > 0 and compute_ms > 0 else None


class RTF(LatencyMetric):
    name = "RTF"

    def scores(self) -> list[Score]:
        def value(sentence: SentenceTiming) -> float | None:
            return real_time_factor(sentence.delays, sentence.source_ms, sentence.compute_ms)

        return [Score(self.name, value, "none", "clock", weight=lambda sentence: sentence.source_ms)]
