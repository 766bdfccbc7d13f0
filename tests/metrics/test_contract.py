"""What every file in stacl/metrics/ must do. A new metric is covered here before its author writes a test."""

from __future__ import annotations

import doctest
import importlib
import inspect
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacl.metrics import latency, measure
from stacl.metrics._batch import PathBatch
from stacl.metrics.base import LatencyMetric, Metric, QualityMetric, Score, SentenceTiming, latency_scores
from stacl.support import plugins
from stacl.traces.trace import Revision, Trace

NAMES = plugins.names("metrics")
KINDS: dict[str, Any] = {name: plugins.find("metrics", name, Metric) for name in NAMES}
LATENCY = [name for name in NAMES if issubclass(KINDS[name], LatencyMetric)]
QUALITY = [name for name in NAMES if issubclass(KINDS[name], QualityMetric) and KINDS[name].default]
LINES = ["the cat sat on the mat .", "a dog barked at the moon all night .", "yes , it is so ."]


def timed(source_length: int, delays: tuple[int, ...]) -> Trace:
    """A trace that has everything a metric may want: a word a second, 50 ms of computing for each written
    word.
    """
    return Trace(
        source_length,
        delays,
        target=tuple(f"w{t}" for t in range(len(delays))),
        read_times=tuple(float(s) for s in range(1, source_length + 1)),
        write_times=tuple(delay + 0.05 * (t + 1) for t, delay in enumerate(delays)),
        compute_seconds=0.05 * len(delays),
        revisions=tuple(Revision(delay, t, (f"w{t}",)) for t, delay in enumerate(delays)),
    )


@st.composite
def sentences(draw: st.DrawFn) -> SentenceTiming:
    source = draw(st.integers(0, 30))
    delays = tuple(sorted(draw(st.lists(st.integers(0, source), max_size=30))))
    reference = draw(st.none() | st.integers(0, 30))
    trace = timed(source, delays) if draw(st.booleans()) else Trace(source, delays)
    return SentenceTiming.of(trace, reference)


@pytest.mark.parametrize("name", NAMES)
def test_is_one_of_the_two_kinds_and_explains_itself(name: str) -> None:
    assert issubclass(KINDS[name], LatencyMetric | QualityMetric)
    module = importlib.import_module(KINDS[name].__module__)
    assert module.__doc__
    functions = [f for _, f in inspect.getmembers(module, inspect.isfunction) if f.__module__ == module.__name__]
    text = "\n".join(filter(None, [KINDS[name].__doc__, *(f.__doc__ for f in functions)]))
    # The formula stands in a docstring, under the reported name, unless another file's function is the
    # formula.
    assert f"{KINDS[name].name} =" in text or name == "comet"


@pytest.mark.parametrize("name", ["base", *NAMES])
def test_examples_in_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"stacl.metrics.{name.replace('-', '_')}")).failed == 0


def test_reported_names_are_unique() -> None:
    names = [score.name for score in latency_scores()] + [KINDS[name].name for name in QUALITY]
    assert len(names) == len(set(names))
    assert {
        "AL",
        "AL_ref",
        "LAAL",
        "AP",
        "CW",
        "CW_max",
        "DAL",
        "ATD",
        "YAAL",
        "StartOffset",
        "EndOffset",
    } <= set(names)
    assert {"AL_CA", "LAAL_CA", "DAL_CA", "ATD_CA", "ms_per_word", "RTF", "NE", "BLEU", "chrF"} <= set(names)


def _scores(name: str) -> list[Score]:
    return KINDS[name]().scores()


@pytest.mark.parametrize("name", LATENCY)
def test_declares_what_it_reports(name: str) -> None:
    scores = _scores(name)
    assert scores
    assert scores[0].name == KINDS[name].name
    for score in scores:
        assert score.length in ("hypothesis", "reference", "longer", "none")
        assert score.needs in ("", "reference", "clock", "reference and clock", "revisions")


@pytest.mark.parametrize("name", LATENCY)
@given(sentences())
def test_is_a_number_or_undefined(name: str, sentence: SentenceTiming) -> None:
    for score in _scores(name):
        value = score.of(sentence)
        assert value is None or math.isfinite(value), score.name
        assert score.of(sentence) == value, f"{score.name} is not a pure function"


@pytest.mark.parametrize("name", LATENCY)
@given(st.lists(sentences().filter(lambda one: one.delays and one.reference_length), min_size=1))
def test_batch_is_the_plain_function(name: str, ordinary: list[SentenceTiming]) -> None:
    batch = PathBatch(
        [one.delays for one in ordinary],
        [one.source_length for one in ordinary],
        [one.reference_length for one in ordinary],  # type: ignore[misc]
    )
    if 0 in batch.source:
        return
    for score in _scores(name):
        if score.batch is not None:
            plain = [score.of(one) for one in ordinary]
            expected = [math.nan if value is None else value for value in plain]
            assert list(score.batch(batch)) == pytest.approx(expected, abs=1e-9, nan_ok=True), score.name


@pytest.mark.parametrize("name", LATENCY)
def test_empty_output_is_undefined(name: str) -> None:
    for score in _scores(name):
        if score.name != "RTF":  # computing took time even if nothing was said
            assert score.of(SentenceTiming.of(timed(4, ()), 3)) is None, score.name


@pytest.mark.parametrize("name", LATENCY)
def test_is_defined_for_an_ordinary_sentence(name: str) -> None:
    for score in _scores(name):
        assert score.of(SentenceTiming.of(timed(6, (3, 4, 5, 6, 6, 6)), 6)) is not None, score.name


def test_every_reported_number_has_a_signature() -> None:
    report = measure([timed(6, (3, 4, 5, 6, 6, 6))], [["a b c d e f"]])
    assert report.scores.keys() == report.signatures.keys()
    assert {score.name for score in latency_scores()} <= report.scores.keys()
    for name, signature in report.signatures.items():
        parts = dict(part.split(":", 1) for part in signature.split("|"))
        assert "version" in parts or {"unit", "eos", "mean", "n", "stacl"} <= parts.keys(), name


def test_without_clock_and_reference_their_numbers_are_not_reported() -> None:
    names = latency(Trace(3, (1, 2, 3))).keys()
    assert names == {"AL", "LAAL", "AP", "CW", "CW_max", "DAL", "ATD", "YAAL", "StartOffset", "EndOffset"}


@pytest.mark.parametrize("name", QUALITY)
def test_quality_prefers_the_reference(name: str) -> None:
    kind = KINDS[name]
    assert issubclass(kind, QualityMetric)
    metric = kind()
    perfect = metric.corpus(LINES, [LINES])
    worse = metric.corpus([line.replace("the", "a") for line in LINES], [LINES])
    assert perfect.score == pytest.approx(100)
    assert worse.score < perfect.score
    assert metric.corpus([line.replace("the", "a") for line in LINES], [LINES, LINES[::-1]]).score >= worse.score
    assert "version:" in perfect.signature
    assert metric.corpus(LINES, [LINES], samples=20).interval == pytest.approx((100, 100))
    sentence = metric.sentence(LINES[0], [LINES[0]])
    assert sentence is None or sentence == pytest.approx(100)
