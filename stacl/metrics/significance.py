"""Statistical significance: bootstrap intervals of one system and paired tests of two.

sacreBLEU provides the BLEU and chrF counts of each sentence; the intervals and tests are computed here. Two differences
from sacreBLEU's own:

* sacreBLEU's interval is mean and half-width, which may exceed 100. Here it lies between percentiles, as for latency.
* sacreBLEU's paired test counts only shuffles with a strictly larger difference. Ties count here. Otherwise two systems
  that differ in a single sentence, where every shuffle ties, get p = 0.0001.

The random generator is seeded: the same files give the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stacl.support.errors import UserError

if TYPE_CHECKING:
    from stacl.metrics.base import Quality

SEED = 12345  # as in sacreBLEU
SAMPLES = 1000
TRIALS = 10_000  # of a paired test
_MOST_SAMPLES = 100_000
_CELLS = 2**21  # of swaps in memory at a time: 16 MB


Values = Sequence[float] | np.ndarray  # one for each sentence
Scored = tuple[Values, Values]  # score and weight of each sentence


class Interval(NamedTuple):
    """A mean and its 95% bootstrap interval."""

    mean: float
    low: float
    high: float


def check_samples(samples: int) -> None:
    """Reject an impractical number of samples before anything is scored."""
    if not 0 <= samples <= _MOST_SAMPLES:
        raise UserError(f"--intervals must be between 0 and {_MOST_SAMPLES:,} samples, not {samples}")


def _resampled_means(values: np.ndarray, weights: np.ndarray, samples: int) -> np.ndarray:
    """The weighted means of `samples` corpora drawn with replacement. NaN marks a sentence without a score."""
    random = np.random.default_rng(SEED)
    known = ~np.isnan(values)
    value, weight = np.where(known, values * weights, 0.0), np.where(known, weights, 0.0)
    means = np.empty(samples)
    for i in range(samples):
        drawn = random.integers(0, len(values), len(values))
        total = weight[drawn].sum()
        means[i] = value[drawn].sum() / total if total > 0 else np.nan
    return means


def mean_interval(values: Values, weights: Values | None = None, samples: int = SAMPLES) -> Interval:
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
    system: Values,
    baseline: Values,
    samples: int = TRIALS,
    weights: tuple[Values, Values] | None = None,
) -> float | None:
    """Two-sided p-value of the difference of two means over the same sentences, by approximate randomisation.

    `weights`: the weights of the sentences in the mean of the system and of the baseline. Sentences without a score in
    either system are left out.
    """
    weights = weights or ([1.0] * len(system), [1.0] * len(baseline))
    results = paired_p_values({"": (system, weights[0])}, {"": (baseline, weights[1])}, samples)
    return results.get("")


def paired_p_values(
    system: Mapping[str, Scored], baseline: Mapping[str, Scored], samples: int = TRIALS
) -> dict[str, float]:
    """`paired_p_value` of every score that both systems have.

    Scores that the same number of sentences define share their random swaps; the result does not change.
    """
    by_count: dict[int, dict[str, _Test]] = {}
    for name in system.keys() & baseline.keys():
        test = _test_of_means(*system[name], *baseline[name])
        if len(test.ours):
            by_count.setdefault(len(test.ours), {})[name] = test
    return {name: p for tests in by_count.values() for name, p in _randomisation_p_values(tests, samples).items()}


class _Test(NamedTuple):
    """The counts of two systems, each [sentences, numbers], and the score of their sums, [trials, numbers]."""

    ours: np.ndarray
    theirs: np.ndarray
    score: Callable[[np.ndarray], np.ndarray]
    rounding: float  # tolerance for ties: sums of the same numbers in another order may differ by so much


def _test_of_means(system: Values, weights: Values, baseline: Values, their_weights: Values) -> _Test:
    values, weights_of_both = np.array([system, baseline], dtype=float), np.array([weights, their_weights], dtype=float)
    known = ~np.isnan(values).any(0)
    ours, theirs = np.stack((values * weights_of_both, weights_of_both), axis=2)[:, known]

    def means(sums: np.ndarray) -> np.ndarray:
        return np.divide(sums[:, 0], sums[:, 1], out=np.zeros(len(sums)), where=sums[:, 1] != 0)

    # The terms may be large although the means are small, so the tolerance is relative to the terms.
    scale = (np.abs(ours) + np.abs(theirs)).sum(0, keepdims=True)
    return _Test(ours, theirs, means, 1e-9 * float(means(scale)[0]))


def _randomisation_p_values(tests: Mapping[str, _Test], samples: int = TRIALS) -> dict[str, float]:
    """Approximate randomisation (Riezler and Maxwell 2005). If the systems do not differ, their outputs can be swapped.
    The p-value is the share of random swaps whose score difference is at least as large as the real one.
    """
    gains = _swapped_sums(np.hstack([test.theirs - test.ours for test in tests.values()]), samples)
    results, first = {}, 0
    for name, test in tests.items():
        ours, theirs = test.ours.sum(0), test.theirs.sum(0)
        one = ours + gains[:, first : first + len(ours)]
        first += len(ours)
        real = np.abs(test.score(ours[None]) - test.score(theirs[None]))[0]
        extreme = np.abs(test.score(one) - test.score(ours + theirs - one)) >= real - test.rounding
        results[name] = (int(extreme.sum()) + 1) / (samples + 1)
    return results


def _swapped_sums(gains: np.ndarray, samples: int) -> np.ndarray:
    """The sums over the swapped sentences, [samples, numbers], one matrix product for many trials."""
    random = np.random.default_rng(SEED)
    sums = np.empty((samples, gains.shape[1]))
    block = max(1, _CELLS // len(gains))
    for start in range(0, samples, block):
        # Each trial draws separately, so that a p-value does not depend on the block size.
        trials = range(start, min(start + block, samples))
        swaps = np.array([random.integers(0, 2, len(gains), dtype=bool) for _ in trials], dtype=float)
        sums[start : trials.stop] = swaps @ gains
    return sums


def sacrebleu_score(
    metric: Any, hypotheses: Sequence[str], references: Sequence[Sequence[str]], samples: int
) -> Quality:
    """A sacreBLEU metric over a corpus, with a bootstrap interval if `samples` is above 0."""
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
    """The p-values of BLEU and chrF, from sacreBLEU's counts of each sentence."""
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    def test(metric: Any) -> _Test:
        ours, theirs = (np.array(metric._extract_corpus_statistics(texts, references)) for texts in (system, baseline))
        return _Test(ours, theirs, lambda sums: np.array([_score_of(metric, one) for one in sums]), rounding=1e-9)

    return _randomisation_p_values({"BLEU": test(BLEU(tokenize=tokenize)), "chrF": test(CHRF())})
