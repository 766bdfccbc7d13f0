"""BLEU, by sacreBLEU, against any number of references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stacl.errors import UserError, suggest
from stacl.metrics.base import Quality, QualityMetric
from stacl.significance import sacrebleu_score


class BLEU(QualityMetric):
    """Papineni et al. 2002, Post 2018: the figure and the signature are those of the `sacrebleu` command.

    BLEU = 100 * min(1, exp(1 - r/c)) * (p1 p2 p3 p4)^(1/4), p_n the share of the hypothesis' n-grams that
    some reference confirms, c the length of the hypotheses, r that of the closest references
    """

    name = "BLEU"

    def __init__(self, tokenize: str = "13a") -> None:
        from sacrebleu import metrics

        known = metrics.BLEU.TOKENIZERS
        if tokenize not in known:
            raise UserError(f"sacreBLEU has no tokenizer {tokenize!r}{suggest(tokenize, known)}")
        self._make = lambda **options: metrics.BLEU(tokenize=tokenize, **options)
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
        # Effective order: a sentence of three words has no 4-gram, and is not worth nothing for that.
        self._by_sentence = self._by_sentence or self._make(effective_order=True)
        return self._by_sentence.sentence_score(hypothesis, list(references)).score
