"""From corpora to what training reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from stacl import config
from stacl.prepare import Prepared, prepare
from tests.helpers import GERMAN


def prepared(folder: Path, share: float, run: str = "run") -> Prepared:
    for name, lines in {"train.de": GERMAN * 40, "train.en": [f"Line {n}!" for n in range(len(GERMAN) * 40)]}.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = f'["{folder}/train.de", "{folder}/train.en"]'
    toml = folder / "config.toml"
    toml.write_text(
        f'[data]\nsource = "de"\ntarget = "en"\ntrain_files = {files}\nvalid_files = {files}\nmax_ratio = 10.0\n'
        f"careless = {share}\n[text]\nvocabulary = 320\n"
    )
    return prepare(config.load(toml), folder / run, lambda text: None)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_so_many_sources_are_written_as_in_a_hurry(tmp_path, share):
    found = prepared(tmp_path, share)
    sources = [" ".join(found.source.words(found.train[i][0])) for i in range(len(found.train))]
    hurried = [text for text in sources if text == text.lower() and not text.endswith(".")]
    assert {text for text in sources if text not in hurried} <= set(GERMAN)
    assert len(hurried) / len(sources) == pytest.approx(share, abs=0.07)
    # What it means is the same, and what is measured on stays as people wrote it.
    assert " ".join(found.target.words(found.train[7][1])) == "Line 7!"
    assert found.valid_text[0][0] == GERMAN[0]
    again = prepared(tmp_path, share, "again")
    assert [again.train[i][0].tolist() for i in range(9)] == [found.train[i][0].tolist() for i in range(9)]
