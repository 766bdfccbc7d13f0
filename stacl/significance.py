"""How sure: bootstrap intervals of one system, paired tests between two.

BLEU and chrF are sacreBLEU's business, and so are their intervals and tests. Latency is a mean over
sentences, for which the same two methods take a few lines. All of it is seeded: the same files give the
same interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from stacl.metrics.base import Quality

SEED = 12345  # sacreBLEU's own
SAMPLES = 1000


class Interval(NamedTuple):
    """A mean and its 95% bootstrap interval."""

    mean: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Half the width, as sacreBLEU prints it after the plus-minus sign."""
        return (self.high - self.low) / 2


def _resampled_means(values: np.ndarray, weights: np.ndarray, samples: int) -> np.ndarray:
    """The weighted means of `samples` corpora drawn with replacement. NaN: a sentence without a score."""
    random = np.random.default_rng(SEED)
    known = ~np.isnan(values)
    value, weight = np.where(known, values * weights, 0.0), np.where(known, weights, 0.0)
    means = np.empty(samples)
    for i in range(samples):
        drawn = random.integers(0, len(values), len(values))
        total = weight[drawn].sum()
        means[i] = value[drawn].sum() / total if total > 0 else np.nan
    return means


def mean_interval(values: Sequence[float], weights: Sequence[float] | None = None, samples: int = SAMPLES) -> Interval:
    """The mean of per-sentence scores with the interval between the 2.5th and the 97.5th percentile.

    >>> mean_interval([2.0] * 50)
    Interval(mean=2.0, low=2.0, high=2.0)
    """
    value = np.asarray(values, dtype=float)
    weight = np.ones_like(value) if weights is None else np.asarray(weights, dtype=float)
    known = ~np.isnan(value)
    if not known.any():
        return Interval(float("nan"), float("nan"), float("nan"))
    means = _resampled_means(value, weight, samples)
    low, high = np.nanpercentile(means, [2.5, 97.5])
    return Interval(float(np.average(value[known], weights=weight[known])), float(low), float(high))


def paired_p_value(system: Sequence[float], baseline: Sequence[float], samples: int = 10 * SAMPLES) -> float | None:
    """Two-sided p-value of the difference of two means over the same sentences, by approximate randomisation.

    Riezler and Maxwell 2005: if the systems were alike, each sentence's two scores could be swapped. The
    p-value is the share of random swaps with a difference at least as large as the real one. Sentences that
    either system left without a score do not take part.
    """
    difference = np.asarray(system, dtype=float) - np.asarray(baseline, dtype=float)
    difference = difference[~np.isnan(difference)]
    if not len(difference):
        return None
    random = np.random.default_rng(SEED)
    real = abs(difference.sum())
    # Sums of the same numbers in another order may differ in the last bit; that is no evidence.
    tolerance = 1e-9 * np.abs(difference).sum()
    extreme = 0
    for _ in range(samples):
        signs = random.integers(0, 2, len(difference)) * 2 - 1
        extreme += abs((signs * difference).sum()) >= real - tolerance
    return (extreme + 1) / (samples + 1)


def sacrebleu_score(
    metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]], samples: int
) -> Quality:
    """A sacreBLEU metric over a corpus, with sacreBLEU's own bootstrap interval if samples are asked for."""
    from stacl.metrics.base import Quality

    if not samples:
        score = metric.corpus_score(list(hypotheses), [list(one) for one in references]).score
        return Quality(score, str(metric.get_signature()))
    from sacrebleu.significance import PairedTest

    test = PairedTest([("system", hypotheses)], {"metric": metric}, references, "bs", n_samples=samples)
    signatures, results = test()
    (name,) = signatures  # the one metric, under sacreBLEU's name for it
    result: Any = results[name][0]
    return Quality(float(result.score), str(signatures[name]), float(result.ci))


def paired_quality(
    system: Sequence[str], baseline: Sequence[str], references: Sequence[Sequence[str]], tokenize: str = "13a"
) -> dict[str, float]:
    """The p-values of BLEU and chrF, by sacreBLEU's own paired approximate randomisation."""
    from sacrebleu import metrics
    from sacrebleu.significance import PairedTest

    if list(system) == list(baseline):
        # sacreBLEU counts only shuffles with a larger difference, so that it finds a text different from
        # itself.
        return {"BLEU": 1.0, "chrF": 1.0}
    systems = [("baseline", baseline), ("system", system)]
    p_values = {}
    for name, metric in (("BLEU", metrics.BLEU(tokenize=tokenize)), ("chrF", metrics.CHRF())):
        _, results = PairedTest(systems, {name: metric}, references, "ar")()
        (column,) = [column for key, column in results.items() if key != "System"]
        result: Any = column[1]
        p_values[name] = float(result.p_value)
    return p_values
