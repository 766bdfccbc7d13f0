"""Intervals and paired tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU

from stacl.metrics import significance
from stacl.metrics.significance import mean_interval, paired_p_value, paired_p_values, paired_quality, sacrebleu_score


def test_interval_is_that_of_the_normal_law_for_many_sentences() -> None:
    values = np.random.default_rng(0).normal(5, 2, 2000)
    interval = mean_interval(values, samples=2000)
    error = values.std() / math.sqrt(len(values))
    assert interval.mean == pytest.approx(values.mean())
    assert interval.low == pytest.approx(values.mean() - 1.96 * error, abs=0.2 * error)
    assert interval.high == pytest.approx(values.mean() + 1.96 * error, abs=0.2 * error)


def test_interval_of_weighted_and_missing_values() -> None:
    values, weights = [1.0, math.nan, 3.0] * 30, [1.0, 9.0, 3.0] * 30
    interval = mean_interval(values, weights)
    assert interval.mean == pytest.approx(2.5)
    assert interval.low < 2.5 < interval.high
    assert math.isnan(mean_interval([math.nan, math.nan]).mean)


def test_the_same_data_give_the_same_interval() -> None:
    values = list(range(50))
    assert mean_interval(values) == mean_interval(values)


def test_systems_that_differ_and_systems_that_do_not() -> None:
    random = np.random.default_rng(1)
    system = random.normal(5, 1, 200)
    assert paired_p_value(system, system, 500) == 1.0
    assert paired_p_value(system + 0.5, system, 500) == pytest.approx(1 / 501)
    noise = random.normal(0, 1, 200)
    found = paired_p_value(system + noise - noise.mean(), system, 500)
    assert found is not None
    assert found > 0.5


def test_p_values_are_even_when_nothing_differs() -> None:
    """Under the null hypothesis one test in ten falls below 0.1."""
    random = np.random.default_rng(2)
    found: list[Any] = [paired_p_value(random.normal(size=30), random.normal(size=30), 200) for _ in range(300)]
    assert 0.04 < np.mean([p < 0.1 for p in found]) < 0.17


def test_sentences_without_a_score_do_not_take_part() -> None:
    assert paired_p_value([1.0, math.nan], [math.nan, 1.0]) is None
    assert paired_p_value([1.0, math.nan] * 20, [2.0, 5.0] * 20, 300) == pytest.approx(1 / 301)


def test_weights_count() -> None:
    """Twenty short sentences later, two long ones earlier: with weights it is another difference, and another p."""
    ours, theirs = [3.0] * 20 + [10.0] * 2, [1.0] * 20 + [18.0] * 2
    weights = [3.0] * 20 + [60.0] * 2
    assert paired_p_value(ours, theirs, 2000) != paired_p_value(ours, theirs, 2000, (weights, weights))
    ones = [1.0] * 22
    assert paired_p_value(ours, theirs, 2000) == paired_p_value(ours, theirs, 2000, (ones, ones))
    # A ratio of sums, each system with denominators of its own: all of our sums are twice theirs.
    ratio = paired_p_value([2.0, 2.0] * 10, [1.0, 1.0] * 10, 2000, ([5.0, 7.0] * 10, [4.0, 9.0] * 10))
    assert ratio == pytest.approx(1 / 2001)


def test_ties_of_small_means_of_large_numbers() -> None:
    ours, theirs = np.array([0.1, 0.2, -0.3] * 4), np.array([0.3, -0.2, -0.1] * 4)
    assert paired_p_value(ours, theirs, 500) == paired_p_value(10 * ours, 10 * theirs, 500) == 1.0


def test_ties_are_no_evidence() -> None:
    """sacreBLEU's own test calls these significant at 0.0001: no shuffle differs by more than the real pair."""
    reference = [f"this is sentence number {n} of the test ." for n in range(12)]
    one_differs = ["this was sentence number 0 of the test .", *reference[1:]]
    assert set(paired_quality(one_differs, reference, [reference]).values()) == {1.0}
    xs, ys = ([line.replace("number", word) for line in reference] for word in ("xxx", "yyy"))
    assert set(paired_quality(xs, ys, [reference]).values()) == {1.0}
    assert set(paired_quality(reference, reference, [reference]).values()) == {1.0}


def test_quality_that_differs() -> None:

    reference = [f"this is sentence number {n} of the test ." for n in range(60)]
    worse = [line.replace("number", "no") if n % 2 else line for n, line in enumerate(reference)]
    p_values = paired_quality(worse, reference, [reference])
    assert set(p_values) == {"BLEU", "chrF"}
    assert max(p_values.values()) < 0.01
    quality = sacrebleu_score(BLEU(), worse, [reference], samples=50)
    assert quality.score == pytest.approx(BLEU().corpus_score(worse, [reference]).score)
    assert quality.interval is not None
    low, high = quality.interval
    assert low < quality.score < high
    assert "bs:50|seed:12345" in quality.signature
    nearly = [*reference[:-1], "this is another sentence of the test ."]
    low, high = sacrebleu_score(BLEU(), nearly, [reference], samples=200).interval or (0, 0)
    assert 90 < low < high <= 100 + 1e-9  # no score is beyond what a perfect text has


def test_together_or_one_by_one_the_p_values_are_those_of_their_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    systems = [{name: (random.normal(size=70), random.random(70)) for name in "ab"} for _ in range(2)]
    systems[0]["b"][0][:9] = math.nan
    found = paired_p_values(systems[0], systems[1], 400)
    for name in "ab":
        (ours, weights), (theirs, their_weights) = systems[0][name], systems[1][name]
        assert found[name] == _by_definition(ours, weights, theirs, their_weights, trials=400)
        assert found[name] == paired_p_value(ours, theirs, 400, (weights, their_weights))
    monkeypatch.setattr(significance, "_CELLS", 500)  # a few trials at a time
    assert paired_p_values(systems[0], systems[1], 400) == found


def _by_definition(*system: np.ndarray, trials: int) -> float:
    """One swap after the other."""
    ours, weights, theirs, their_weights = np.array(system)[:, ~np.isnan(system).any(0)]
    swaps = np.random.default_rng(significance.SEED)

    def difference(swapped: np.ndarray) -> float:
        one, other = (weights, ours), (their_weights, theirs)
        means = (
            np.average(np.where(swapped, b[1], a[1]), weights=np.where(swapped, b[0], a[0]))
            for a, b in ((one, other), (other, one))
        )
        return abs(np.subtract(*means))

    least = difference(np.zeros(len(ours), dtype=bool)) - 1e-9
    drawn = [difference(swaps.integers(0, 2, len(ours), dtype=bool)) for _ in range(trials)]
    return (sum(found >= least for found in drawn) + 1) / (trials + 1)
