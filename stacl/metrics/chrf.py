"""chrF, by sacreBLEU: the F-score of character n-grams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stacl.metrics.base import Quality, QualityMetric
from stacl.significance import sacrebleu_score


class ChrF(QualityMetric):
    """Popović 2015: chrF = 100 * (1 + b^2) P R / (b^2 P + R), b = 2, over character n-grams of order 1 to 6.

    With several references each sentence takes its best one. It needs no tokenizer, which is why it is the
    safer of the two for Chinese.
    """

    name = "chrF"

    def __init__(self) -> None:
        from sacrebleu.metrics import CHRF

        self._make = CHRF
        self._by_sentence: Any = None

    def corpus(
        self,
        hypotheses: Sequence[str],
        references: Sequence[Sequence[str]],
        sources: Sequence[str] = (),
        samples: int = 0,
    ) -> Quality:
        return sacrebleu_score(self._make(), hypotheses, references, samples)

    def sentence(self, hypothesis: str, references: Sequence[str]) -> float | None:
        self._by_sentence = self._by_sentence or self._make()
        return self._by_sentence.sentence_score(hypothesis, list(references)).score
