"""The common base of BLEU and chrF, which sacreBLEU computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stacl.metrics.base import Quality, QualityMetric
from stacl.metrics.significance import sacrebleu_score


class SacreBleuMetric(QualityMetric):
    """`make` builds sacreBLEU's metric; `for_sentences` are its options for sentence scores."""

    def __init__(self, make: Callable[..., Any], **for_sentences: Any) -> None:
        self._make = make
        self._for_sentences = for_sentences
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
        self._by_sentence = self._by_sentence or self._make(**self._for_sentences)
        return self._by_sentence.sentence_score(hypothesis, list(references)).score
