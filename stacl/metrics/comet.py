"""COMET: a trained quality model, if the package `unbabel-comet` is installed."""

from __future__ import annotations

from collections.abc import Sequence

from stacl.metrics.base import Quality, QualityMetric
from stacl.support.errors import UserError

DEFAULT_MODEL = "Unbabel/wmt22-comet-da"


class COMET(QualityMetric):
    """Rei et al. 2020: the mean of a regression model's score over (source, hypothesis, reference).

    It takes one reference; with several, a sentence gets the mean over them. It needs the source text.
    """

    name = "COMET"
    default = False  # only on request: it loads a model of two gigabytes

    def __init__(self, model: str = DEFAULT_MODEL) -> None:
        self.model = model

    def corpus(
        self,
        hypotheses: Sequence[str],
        references: Sequence[Sequence[str]],
        sources: Sequence[str] = (),
        samples: int = 0,
    ) -> Quality:
        if len(sources) != len(hypotheses):
            raise UserError("COMET needs the source text; give it in the traces or with --source")
        try:
            import comet
        except ImportError:
            raise UserError("COMET is not installed: pip install unbabel-comet") from None
        from stacl.metrics.significance import mean_interval

        scorer = comet.load_from_checkpoint(comet.download_model(self.model))
        by_reference = []
        for reference in references:
            triples = zip(sources, hypotheses, reference, strict=True)
            data = [{"src": src, "mt": mt, "ref": ref} for src, mt, ref in triples]
            by_reference.append(scorer.predict(data, batch_size=16, gpus=0).scores)
        scores = [sum(values) / len(values) for values in zip(*by_reference, strict=True)]
        version = getattr(comet, "__version__", "unknown")
        signature = f"nrefs:{len(references)}|model:{self.model}|version:{version}"
        found = mean_interval(scores, samples=samples) if samples else None
        return Quality(sum(scores) / len(scores), signature, (found.low, found.high) if found else None)
