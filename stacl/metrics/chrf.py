"""chrF from sacreBLEU: the F-score of character n-grams."""

from __future__ import annotations

from stacl.metrics._sacrebleu import SacreBleuMetric


class ChrF(SacreBleuMetric):
    """Popović 2015: chrF = 100 * (1 + b^2) P R / (b^2 P + R), b = 2, over character n-grams of order 1 to 6.

    With several references each sentence uses its best one. It needs no tokenizer, so it is safer than BLEU for
    Chinese.
    """

    name = "chrF"

    def __init__(self) -> None:
        from sacrebleu.metrics.chrf import CHRF

        super().__init__(CHRF)
