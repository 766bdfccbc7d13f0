"""docs/python.md: its examples run."""

from __future__ import annotations

import doctest

from tests.conftest import ROOT


def test_examples_run() -> None:
    found = doctest.testfile(str(ROOT / "docs" / "python.md"), module_relative=False)
    assert found.attempted > 10
    assert found.failed == 0
