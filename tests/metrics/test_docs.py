"""docs/metrics.md: its examples run, and it says something about every reported number."""

from __future__ import annotations

import doctest
from pathlib import Path

from stacl.metrics.base import Metric, latency_scores
from stacl.support import plugins

PAGE = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def test_examples_run() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted > 10
    assert found.failed == 0


def test_every_metric_is_explained() -> None:
    text = PAGE.read_text(encoding="utf-8")
    names = {score.name for score in latency_scores()}
    names |= {plugins.find("metrics", name, Metric).name for name in plugins.names("metrics")}
    assert sorted(name for name in names if name not in text) == []
