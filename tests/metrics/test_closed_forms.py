"""What can be worked out by hand (SPEC 6), and what must hold for every path."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacl.metrics import latency
from stacl.metrics.ap import average_proportion
from stacl.metrics.dal import differentiable_average_lagging
from stacl.traces.trace import Trace

lengths = st.integers(1, 60)


def wait(k: int, source: int, target: int) -> Trace:
    return Trace(source, tuple(min(k + t, source) for t in range(target)))


@st.composite
def paths(draw: st.DrawFn, least: int = 1) -> tuple[Trace, int]:
    """Any legal path and a reference length."""
    source = draw(lengths)
    delays = sorted(draw(st.lists(st.integers(0, source), min_size=least, max_size=60)))
    return Trace(source, tuple(delays)), draw(lengths)


@given(st.data(), lengths, st.integers(0, 20))
def test_wait_k(data: st.DataObject, source: int, longer: int) -> None:
    k = data.draw(st.integers(1, source))
    target = source + longer  # the cut-off lies within the output
    ratio = target / source
    scores = latency(wait(k, source, target))
    assert scores["AL"] == pytest.approx(k + (1 - 1 / ratio) * (source - k) / 2)
    assert scores["CW"] == pytest.approx(source / (source - k + 1))
    assert scores["CW_max"] == k
    if source == target:
        assert scores["DAL"] == pytest.approx(k)
        assert scores["YAAL"] == (None if k == source else pytest.approx(k))


@given(lengths, lengths)
def test_full_sentence(source: int, target: int) -> None:
    scores = latency(Trace(source, (source,) * target))
    assert [scores[name] for name in ("AL", "LAAL", "CW", "CW_max", "DAL")] == [source] * 5
    assert scores["AP"] == pytest.approx(1)
    assert scores["YAAL"] is None
    assert scores["EndOffset"] == 0


@given(lengths)
def test_wait_1_average_proportion(n: int) -> None:
    assert average_proportion(wait(1, n, n).delays, n, n) == pytest.approx((n + 1) / (2 * n))


def test_the_papers_example() -> None:
    trace = wait(2, 7, 9)
    assert trace.delays[3 - 1] == 4
    assert trace.cutoff() == 6


@pytest.mark.parametrize(
    ("c", "expected"),
    [
        ((1, 5), [1.21, 3.20, 5.21, 7.20, 9.21]),  # ratio 1.25
        ((1, 4), [-0.10, 1.90, 3.98, 6.02, 8.10]),
        ((0, 1), [4.9, 6.7, 8.5, 10.3, 12.1]),
    ],
)
def test_catch_up_of_the_specification(c: tuple[int, int], expected: list[float]) -> None:
    for k, value in zip((1, 3, 5, 7, 9), expected, strict=True):
        delays = tuple(max(0, min(k + t - 1 - c[0] * t // c[1], 40)) for t in range(1, 51))
        assert latency(Trace(40, delays))["AL"] == pytest.approx(value, abs=0.006)


@given(paths())
def test_bounds(case: tuple[Trace, int]) -> None:
    trace, reference = case
    scores: Mapping[str, Any] = latency(trace, reference)
    length = trace.source_length
    assert 0 <= scores["AP"] <= 1 + 1e-12
    assert scores["AL"] <= length + 1e-9
    # The longer target moves the ideal line down: LAAL is the larger of the two.
    assert scores["LAAL"] >= max(scores["AL"], scores["AL_ref"]) - 1e-9
    assert -1e-9 <= scores["DAL"] <= length + 1e-9
    assert scores["DAL"] >= scores["AL"] - 1e-9
    assert scores["ATD"] >= 1 - 1e-9
    assert scores["StartOffset"] == trace.delays[0]
    assert -length <= scores["EndOffset"] <= 0
    if trace.delays[-1] == 0:
        assert scores["CW"] is None
        assert scores["CW_max"] is None
    else:
        assert 1 <= scores["CW"] <= scores["CW_max"] <= length
    if trace.delays[0] == length:
        assert scores["YAAL"] is None
    else:
        assert scores["YAAL"] < length


@given(lengths, lengths, st.integers(1, 59))
def test_monotone_in_k(source: int, target: int, k: int) -> None:
    """A system that waits longer is never said to be faster."""
    sooner: Mapping[str, Any] = latency(wait(k, source, target))
    later: Mapping[str, Any] = latency(wait(k + 1, source, target))
    for name in ("AL", "LAAL", "AP", "DAL", "ATD", "CW", "CW_max", "StartOffset", "EndOffset"):
        assert later[name] >= sooner[name] - 1e-9, name


@given(paths())
def test_dal_is_the_papers_recursion(case: tuple[Trace, int]) -> None:
    """The running maximum in the code against the formula as printed."""
    trace, _ = case
    pace = trace.source_length / len(trace.delays)
    last, total = -math.inf, 0.0
    for t, delay in enumerate(trace.delays):
        last = max(delay, last + pace)
        total += last - t * pace
    found = differentiable_average_lagging(trace.delays, trace.source_length, 0)
    assert found == pytest.approx(total / len(trace.delays))


@given(paths())
def test_lagging_as_printed(case: tuple[Trace, int]) -> None:
    """AL and YAAL with a loop, as the definitions read."""
    trace, reference = case
    length, delays = trace.source_length, trace.delays
    scores = latency(trace, reference)
    tau = trace.cutoff() or len(delays)
    hypothesis = [delay - t * length / len(delays) for t, delay in enumerate(delays)]
    assert scores["AL"] == pytest.approx(sum(hypothesis[:tau]) / tau)
    before = [delay - t * length / max(len(delays), reference) for t, delay in enumerate(delays) if delay < length]
    assert scores["YAAL"] == (pytest.approx(sum(before) / len(before)) if before else None)


def test_empty_output_has_no_latency() -> None:
    assert set(latency(Trace(5, ()), 4).values()) == {None}


def test_empty_source_has_no_lagging() -> None:
    scores = latency(Trace(0, (0, 0)), 2)
    assert [scores[name] for name in ("AL", "LAAL", "AP", "DAL", "ATD", "YAAL", "CW")] == [None] * 7


def test_source_of_one_word() -> None:
    scores = latency(Trace(1, (1, 1)), 2)
    assert (scores["AL"], scores["AP"], scores["CW"], scores["DAL"]) == (1, 1, 1, 1)


def test_output_longer_than_the_reference_is_not_rewarded_by_laal() -> None:
    """A hundred words too many make AL_ref smaller than AL; LAAL does not fall for it."""
    scores: Mapping[str, Any] = latency(wait(3, 10, 110), 10)
    assert scores["AL_ref"] == pytest.approx(3)
    assert scores["LAAL"] == scores["AL"] > 6
