"""BLEU, by sacreBLEU, against any number of references."""

from __future__ import annotations

from functools import partial

from stacl.metrics._sacrebleu import SacreBleuMetric
from stacl.support.errors import UserError, suggest

_BUILT_IN = ("13a", "zh", "char", "intl", "none")  # which need nothing else


class BLEU(SacreBleuMetric):
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
        if tokenize not in _BUILT_IN:
            try:
                metrics.BLEU(tokenize=tokenize)
            except Exception as error:  # some want a package more, some the network
                said = " ".join(str(error).split())
                raise UserError(f"sacreBLEU's tokenizer {tokenize!r} does not work here: {said}") from error
        # Effective order: a sentence of three words has no 4-gram, and is not worth nothing for that.
        super().__init__(partial(metrics.BLEU, tokenize=tokenize), effective_order=True)
