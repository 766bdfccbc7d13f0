"""`model.start`: warm start with the weights of a run, and its vocabulary if the languages are the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from stacl.runs.checkpoint import load_tensors
from stacl.runs.folder import RunFolder
from tests.conftest import stacl

pytestmark = pytest.mark.slow


def start_run(toy_config: Path, start: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    # With a rate near 0, validation after one step measures the initial weights.
    frozen = ("train.steps=1", "train.rate=1e-9", "train.warmup=0", "train.threads=1", "train.schedule=constant")
    changes = [part for change in (*frozen, f"model.start={start}", *more) for part in ("--set", change)]
    return stacl("train", toy_config, "--out", out, *changes)


def test_a_run_starts_with_the_weights_of_the_other(copy_run: Path, toy_config: Path, tmp_path: Path) -> None:
    done = start_run(toy_config, copy_run, tmp_path / "run")
    assert done.returncode == 0, done.stderr
    entry = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[-1])
    assert entry["bleu"] > 95
    own, taken = (folder / "vocabulary" / "source.model" for folder in (tmp_path / "run", copy_run))
    assert own.read_bytes() == taken.read_bytes()


def test_resuming_does_not_need_the_start(copy_run: Path, toy_config: Path, tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.symlink_to(copy_run)
    assert start_run(toy_config, start, tmp_path / "run").returncode == 0
    start.unlink()
    done = stacl("train", "--resume", "--out", tmp_path / "run", "--set", "train.steps=2")
    assert done.returncode == 0, done.stderr
    assert "resumed" in done.stderr


def test_other_languages_keep_the_layers_and_the_vectors_of_known_pieces(
    copy_run: Path, toy_config: Path, tmp_path: Path
) -> None:
    english = tmp_path / "en.txt"
    english.write_text("one two three\nfour five six\nseven eight nine\nba be bi\n" * 50)
    files = f'["{english}","{english}"]'
    other = (
        "data.source=de",
        "data.target=en",
        "data.corpora=[]",
        f"data.train_files={files}",
        f"data.valid_files={files}",
    )
    done = start_run(toy_config, copy_run, tmp_path / "run", *other, "text.vocabulary=330")
    assert done.returncode == 0, done.stderr
    started, taken = (load_tensors(folder / "model.safetensors") for folder in (tmp_path / "run", copy_run))
    ours, theirs = (RunFolder(folder).vocabularies()[0].pieces for folder in (tmp_path / "run", copy_run))
    assert ours != theirs
    both = set(ours) & set(theirs)
    assert len(both) > 256
    for name in started:
        if name in ("source_embedding.weight", "target_embedding.weight", "bias"):
            own, other_rows = started[name], taken[name]
            for piece in both:
                assert own[ours.index(piece)].allclose(other_rows[theirs.index(piece)], atol=1e-6), (name, piece)
        else:
            assert started[name].allclose(taken[name], atol=1e-6), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("model.width=64", "does not belong to this model"),
        ("text.shared=false", "text.shared must be true"),
        ("model.start=nowhere", "no model nowhere"),
    ],
)
def test_an_incompatible_start_is_an_error(
    copy_run: Path, toy_config: Path, tmp_path: Path, change: str, message: str
) -> None:
    done = start_run(toy_config, copy_run, tmp_path / "run", change)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
