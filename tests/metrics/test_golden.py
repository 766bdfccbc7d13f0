"""Every value of the golden file, to 1e-9 (or to the ten digits that it prints)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stacl.metrics import latency, measure
from stacl.metrics.al import average_lagging
from stacl.traces import logs
from stacl.traces.trace import Trace
from tests.samples import GOLDEN


@pytest.fixture(scope="module")
def folder() -> Path:
    return GOLDEN


@pytest.fixture(scope="module")
def expected(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "expected.json").read_text(encoding="utf-8"))


def test_the_authors_3000_paths(folder: Path, expected: dict[str, Any]) -> None:
    wanted = expected["rw_paths.txt"]
    path = folder / "rw_paths.txt"
    report = measure(logs.read(path))
    weighted = measure(logs.read(path), weighted=True)
    assert report.sentences == wanted["sentences"]
    assert report.scores["AL"] == pytest.approx(wanted["AL_hypothesis_length_mean"], abs=1e-9)
    assert weighted.scores["AL"] == pytest.approx(wanted["AL_hypothesis_length_weighted_by_source"], abs=1e-9)
    assert report.scores["AP"] == pytest.approx(wanted["AP_hypothesis_length_mean"], abs=1e-9)
    assert report.scores["CW"] == pytest.approx(wanted["CW_mean"], abs=1e-9)
    assert report.scores["DAL"] == pytest.approx(wanted["DAL_mean"], abs=1e-9)


def test_single_sentences_as_simuleval_scores_them(expected: dict[str, Any]) -> None:
    ours = {"AL": "AL_ref", "AP": "AP_ref", "AL_hypothesis_length": "AL"}
    case: dict[str, Any]
    checked = 0
    for case in expected["single_sentences_as_simuleval_scores_them"]:
        case = dict(case)
        delays, length = tuple(case.pop("delays")), case.pop("source_length")
        reference, unit = case.pop("reference_length"), case.pop("unit", "word")
        found = latency(Trace(length, delays, unit=unit), reference)
        for name, value in case.items():
            # The file prints ten digits of values such as 5/6.
            assert found[ours.get(name, name)] == pytest.approx(value, abs=1e-9), (name, delays)
            checked += 1
    assert checked >= 45


def test_char_is_a_unit_of_the_target_only() -> None:
    """The golden char sentence: three source words, four characters, from a trace in words."""
    trace = Trace(3, (1, 2, 3), target=("你", "好", "世界"))
    assert trace.in_unit("char").delays == (1, 2, 3, 3)
    assert average_lagging(trace.in_unit("char").delays, 3, 4) == pytest.approx(1.25)
