"""Wall-clock variants, by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stacl.metrics import latency, measure
from stacl.traces.trace import Trace

# Four words, one a second; wait-2; each written word is shown a quarter of a second after what it waited for.
TRACE = Trace(
    4,
    (2, 3, 4, 4),
    read_times=(1.0, 2.0, 3.0, 4.0),
    write_times=(2.25, 3.25, 4.25, 4.5),
    compute_seconds=1.0,
)


def test_computation_aware_lagging_is_lagging_in_milliseconds() -> None:
    scores = latency(TRACE)
    # The ideal listener hears a word a second: at 0, 1 and 2 s; the third word is the first after the end.
    assert scores["AL_CA"] == pytest.approx((2250 + (3250 - 1000) + (4250 - 2000)) / 3)
    assert scores["YAAL_CA"] == pytest.approx((2250 + (3250 - 1000)) / 2)
    assert scores["AP_CA"] == pytest.approx((2.25 + 3.25 + 4.25 + 4.5) / 16)
    assert scores["DAL_CA"] == pytest.approx(2250)
    assert scores["StartOffset_CA"] == pytest.approx(2250)
    assert scores["EndOffset_CA"] == pytest.approx(500)
    # Words 1 to 4 answer words 1 to 4, which came after 1, 2, 3 and 4 s.
    assert scores["ATD_CA"] == pytest.approx((1250 + 1250 + 1250 + 500) / 4)
    assert "CW_CA" not in scores


def test_computing_time() -> None:
    scores = latency(TRACE)
    assert scores["ms_per_word"] == pytest.approx(250)
    assert scores["RTF"] == pytest.approx(0.25)


def test_over_a_corpus_computing_time_is_a_ratio_of_sums() -> None:
    short = Trace(1, (1,), read_times=(1.0,), write_times=(3.0,), compute_seconds=2.0)
    report = measure([TRACE, short])
    assert report.scores["ms_per_word"] == pytest.approx(3000 / 5)
    assert report.scores["RTF"] == pytest.approx(3 / 5)
    assert "mean:ratio" in report.signatures["RTF"]
    assert "clock:wall" in report.signatures["AL_CA"]


def test_infinitely_fast_machine_lags_as_the_words_do() -> None:
    """At a word a second and no computing time, AL_CA is AL in seconds."""
    fast = Trace(4, (2, 3, 4, 4), read_times=(1.0, 2.0, 3.0, 4.0), write_times=(2.0, 3.0, 4.0, 4.0))
    scores: Mapping[str, Any] = latency(fast)
    for name in ("AL", "LAAL", "DAL", "YAAL", "StartOffset", "EndOffset"):
        assert scores[f"{name}_CA"] == pytest.approx(1000 * scores[name]), name


def test_source_that_came_all_at_once_has_no_pace() -> None:
    scores = latency(Trace(2, (1, 2), read_times=(0.0, 0.0), write_times=(0.1, 0.2)))
    assert "AL_CA" not in scores


def test_with_the_references_length_as_in_simuleval() -> None:
    """A log of speech in milliseconds, and one of words: two reference words, so the ideal step is 2 s."""
    speech = Trace(4000, (2000, 3000, 4000, 4000), unit="ms", write_times=TRACE.write_times)
    for trace in (TRACE, speech):
        scores = latency(trace, reference_length=2)
        assert scores["AL_ref_CA"] == pytest.approx((2250 + (3250 - 2000) + (4250 - 4000)) / 3)
        assert scores["AP_ref_CA"] == pytest.approx((2.25 + 3.25 + 4.25 + 4.5) / 8)
    assert "AL_ref_CA" not in latency(TRACE)
    assert "AL_ref_CA" not in latency(Trace(4, TRACE.delays), reference_length=2)
    assert "clock:wall|length:reference" in measure([TRACE], [["two words"]]).signatures["AL_ref_CA"]
