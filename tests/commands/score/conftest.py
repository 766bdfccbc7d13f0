"""A folder with small logs and references, and a helper that runs `stacl score`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stacl.__main__ import main
from stacl.traces import logs
from stacl.traces.trace import Trace

TRACES = [
    Trace(3, (1, 2, 3, 3), source=("我", "很", "好"), target=("i", "am", "fine", ".")),
    Trace(4, (2, 3, 4), source=("你", "在", "哪", "里"), target=("where", "are", "you")),
]


REVISED = """{"source_length": 2, "delays": [1, 2], "target": ["a", "b"], "read_times": [0.4, 0.8], "revisions": [
  {"read": 1, "keep": 0, "words": ["a"], "time": 0.5}, {"read": 2, "keep": 1, "words": ["b"], "time": 0.9}]}
""".replace("\n  ", " ")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    logs.write(TRACES, "ours.jsonl", "trace")
    logs.write(TRACES, "ours.rw", "rw")
    (tmp_path / "ref.en").write_text("i am well .\nwhere are you now\n", encoding="utf-8")
    (tmp_path / "ref2.en").write_text("i am fine .\nwhere is it\n", encoding="utf-8")
    return tmp_path


def scored(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["score", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)
