"""What the pictures are drawn from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stacl.traces import logs
from stacl.traces.trace import Trace

GERMAN = Trace(
    5,
    (3, 4, 5, 5),
    source=("er", "hat", "das", "Buch", "gelesen"),
    target=("he", "read", "the", "book"),
    policy="wait-k:3",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    early = Trace(5, (1, 1, 3, 5), source=GERMAN.source, target=GERMAN.target, policy="wait-k:1")
    logs.write([GERMAN, GERMAN], "de.jsonl", "trace")
    logs.write([early, early], "early.jsonl", "trace")
    Path("links").write_text("0-0 1-1 4?1 2-2 3-3\n1-1 2-2 5p2 3-3 4-4\n", encoding="utf-8")
    points = [
        {"policy": f"wait-k:{k}", "scores": {"AL": k, "CW": 1 + k / 9, "BLEU": 20 + k, "YAAL": None}} for k in (5, 1, 3)
    ]
    points.append({"policy": "full", "scores": {"AL": 30, "CW": 30, "BLEU": 29}, "intervals": {"BLEU": [28, 30]}})
    Path("ours.json").write_text(json.dumps(points), encoding="utf-8")
    for k in (1, 3):
        score = {"scores": {"AL": k + 0.5, "BLEU": 18 + k, "CW": 2}, "intervals": {"BLEU": [17 + k, 19 + k]}}
        Path(f"theirs{k}.json").write_text(json.dumps(score), encoding="utf-8")
    return tmp_path


def drawn_text(figure: object) -> list[str]:
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]  # type: ignore[attr-defined]
