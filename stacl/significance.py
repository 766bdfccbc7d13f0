"""How sure: bootstrap intervals of one system, paired tests between two.

BLEU and chrF are sacreBLEU's business, and so is what they count in each sentence; what is made of these counts is
ours. sacreBLEU's interval is a mean and a half-width, which may reach beyond 100: here it is between percentiles, as
for latency. Its paired test counts only shuffles with a strictly larger difference, so that two systems which differ in
one sentence of twelve, where every shuffle ties, are called different at p = 0.0001. Ours counts ties. All of it is
seeded: the same files give the same interval.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stacl.errors import UserError

if TYPE_CHECKING:
    from stacl.metrics.base import Quality

SEED = 12345  # sacreBLEU's own
SAMPLES = 1000
TRIALS = 10_000  # of a paired test
_MOST_SAMPLES = 100_000


class Interval(NamedTuple):
    """A mean and its 95% bootstrap interval."""

    mean: float
    low: float
    high: float


def check_samples(samples: int) -> None:
    """Before anything is scored: what nobody can wait for is a slip of the finger."""
    if not 0 <= samples <= _MOST_SAMPLES:
        raise UserError(f"--intervals takes a number of samples, at most {_MOST_SAMPLES:,}, not {samples}")


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


def paired_p_value(
    system: Sequence[float],
    baseline: Sequence[float],
    samples: int = TRIALS,
    weights: tuple[Sequence[float], Sequence[float]] | None = None,
) -> float | None:
    """Two-sided p-value of the difference of two means over the same sentences, by approximate randomisation.

    `weights`: what each sentence weighs in the mean of the one system and of the other. Sentences that either system
    left without a score do not take part.
    """
    ours, theirs = np.asarray(system, dtype=float), np.asarray(baseline, dtype=float)
    known = ~np.isnan(ours) & ~np.isnan(theirs)
    if not known.any():
        return None
    our_weight, their_weight = (np.ones_like(ours),) * 2 if weights is None else map(np.asarray, weights)
    sums = [np.stack((v * w, w), axis=1)[known] for v, w in ((ours, our_weight), (theirs, their_weight))]

    def mean(sum_and_weight: np.ndarray) -> float:
        return float(sum_and_weight[0] / sum_and_weight[1]) if sum_and_weight[1] else 0.0

    # What is summed may be large where the means are small: rounding is measured against it.
    scale = (np.abs(sums[0]) + np.abs(sums[1])).sum(0)
    return _share_of_swaps(sums[0], sums[1], mean, 1e-9 * mean(scale), samples)


def _share_of_swaps(
    ours: np.ndarray,
    theirs: np.ndarray,
    score: Callable[[np.ndarray], float],
    rounding: float,
    samples: int = TRIALS,
) -> float:
    """Riezler and Maxwell 2005: if the systems were alike, what each made of a sentence could be swapped. The p-value
    is the share of random swaps with a difference of the two scores at least as large as the real one.

    `ours` and `theirs` are [sentences, numbers]; `score` takes the sum over the sentences. Sums of the same numbers in
    another order may differ by `rounding`; that is no evidence.
    """
    total = ours.sum(0) + theirs.sum(0)
    least = abs(score(ours.sum(0)) - score(theirs.sum(0))) - rounding
    random = np.random.default_rng(SEED)
    extreme = 0
    for _ in range(samples):
        swapped = random.integers(0, 2, len(ours), dtype=bool)
        one = np.where(swapped[:, None], theirs, ours).sum(0)
        extreme += abs(score(one) - score(total - one)) >= least
    return (extreme + 1) / (samples + 1)


def sacrebleu_score(
    metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]], samples: int
) -> Quality:
    """A sacreBLEU metric over a corpus, with a bootstrap interval if samples are asked for."""
    from stacl.metrics.base import Quality

    score = float(metric.corpus_score(list(hypotheses), [list(one) for one in references]).score)
    signature = metric.get_signature()
    if not samples:
        return Quality(score, str(signature))
    counts = np.array(metric._extract_corpus_statistics(hypotheses, references))
    random = np.random.default_rng(SEED)
    drawn = (counts[random.integers(0, len(counts), len(counts))].sum(0) for _ in range(samples))
    low, high = np.percentile([_score_of(metric, sums) for sums in drawn], [2.5, 97.5])
    signature.update("bs", samples)
    signature.update("seed", str(SEED))
    return Quality(score, str(signature), (float(low), float(high)))


def _score_of(metric: Any, sums: np.ndarray) -> float:
    return float(metric._compute_score_from_stats(sums.tolist()).score)


def paired_quality(
    system: Sequence[str], baseline: Sequence[str], references: Sequence[Sequence[str]], tokenize: str = "13a"
) -> dict[str, float]:
    """The p-values of BLEU and chrF, from the counts that sacreBLEU takes of each sentence."""
    from sacrebleu import metrics

    found = {}
    made: tuple[tuple[str, Any], ...] = (("BLEU", metrics.BLEU(tokenize=tokenize)), ("chrF", metrics.CHRF()))
    for name, metric in made:
        counts = [np.array(metric._extract_corpus_statistics(texts, references)) for texts in (system, baseline)]

        found[name] = _share_of_swaps(counts[0], counts[1], partial(_score_of, metric), rounding=1e-9)
    return found
