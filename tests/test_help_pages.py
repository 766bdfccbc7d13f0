"""docs/commands.md matches the help texts."""

from __future__ import annotations

import runpy

import pytest

from tests.conftest import ROOT


def test_the_page_matches_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    made = runpy.run_path(str(ROOT / "docs" / "make_commands.py"))
    assert made["PAGE"].read_text(encoding="utf-8") == made["render"](), "run `make docs`"
