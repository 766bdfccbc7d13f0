"""docs/commands.md is what the program says of itself."""

from __future__ import annotations

import runpy

from tests.conftest import ROOT


def test_the_page_is_what_the_program_prints(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    made = runpy.run_path(str(ROOT / "docs" / "make_commands.py"))
    assert made["PAGE"].read_text(encoding="utf-8") == made["render"](), "run `make docs`"
