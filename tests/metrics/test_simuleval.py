"""Equality with the real SimulEval: its answers about 2,000 random paths, and its scorers where installed."""

from __future__ import annotations

import json

import pytest

from stacl.metrics import latency
from stacl.traces.trace import Trace
from tests.metrics import make_simuleval_fixture as simuleval


def ours(delays: list[int], source_length: int, reference_length: int) -> dict[str, float | None]:
    return latency(Trace(source_length, tuple(delays)), reference_length)


def test_committed_answers() -> None:
    fixture = json.loads(simuleval.FIXTURE.read_text(encoding="utf-8"))
    assert fixture["names"] == list(simuleval.SCORERS)
    assert len(fixture["paths"]) >= 2000
    for delays, source_length, reference_length, scores in fixture["paths"]:
        found = ours(delays, source_length, reference_length)
        for name, value in zip(fixture["names"], scores, strict=True):
            assert found[name] == pytest.approx(value, abs=1e-9), (
                name,
                delays,
                source_length,
                reference_length,
            )


def test_the_installed_simuleval() -> None:
    for delays, source_length, reference_length in simuleval.random_paths(5000, seed=2, longest=60):
        found = ours(delays, source_length, reference_length)
        for name, value in simuleval.simuleval_scores(delays, source_length, reference_length).items():
            assert found[name] == pytest.approx(value, abs=1e-9), (
                name,
                delays,
                source_length,
                reference_length,
            )


def test_simuleval_loses_atd_when_it_reloads_its_log() -> None:
    """docs/metrics.md tells this story; the number in it is SimulEval's own."""
    fixture = json.loads(simuleval.FIXTURE.read_text(encoding="utf-8"))
    assert fixture["reloaded_ATD"] == 0.0
    assert ours([3, 4, 5, 6, 6, 6], 6, 6)["ATD"] == 3.0
