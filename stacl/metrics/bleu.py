"""BLEU from sacreBLEU, with any number of references."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from stacl.metrics._sacrebleu import SacreBleuMetric
from stacl.support.errors import UserError, suggest
from stacl.text.characters import is_han

_BUILT_IN = ("13a", "zh", "char", "intl", "none")  # these need no extra package


def default_tokenizer(references: Iterable[str]) -> str:
    """The sacreBLEU tokenizer for the language of the references: zh for Chinese, else 13a.

    >>> default_tokenizer(["你好吗", "OK"]), default_tokenizer(["how are you"])
    ('zh', '13a')
    """
    letters = [character for line in references for character in line if character.isalpha()]
    return "zh" if 2 * sum(map(is_han, letters)) > len(letters) else "13a"


class BLEU(SacreBleuMetric):
    """Papineni et al. 2002, Post 2018. Score and signature equal those of the `sacrebleu` command.

    BLEU = 100 * min(1, exp(1 - r/c)) * (p1 p2 p3 p4)^(1/4), where p_n is the share of hypothesis n-grams that occur
    in a reference, c the length of the hypotheses, and r that of the closest references.
    """

    name = "BLEU"

    def __init__(self, tokenize: str = "13a") -> None:
        from sacrebleu.metrics.bleu import BLEU

        known = BLEU.TOKENIZERS
        if tokenize not in known:
            raise UserError(f"sacreBLEU has no tokenizer {tokenize!r}{suggest(tokenize, known)}")
        if tokenize not in _BUILT_IN:
            try:
                BLEU(tokenize=tokenize)
            except Exception as error:  # some need an extra package, some the network
                reason = " ".join(str(error).split())
                raise UserError(f"sacreBLEU's tokenizer {tokenize!r} is not available: {reason}") from error
        # Effective order: a sentence of three words has no 4-grams and would score 0 otherwise.
        super().__init__(partial(BLEU, tokenize=tokenize), effective_order=True)
