"""The inference manifest: a model loads without its training config, and damage is reported in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import stacl
from stacl.runs import pretrained
from stacl.runs.folder import RunFolder
from stacl.runs.manifest import Manifest
from stacl.support.errors import UserError

SENTENCE = "Ein Hund springt über einen Zaun."


@pytest.fixture
def model(tmp_path: Path) -> RunFolder:
    shutil.copytree(pretrained.folder("photos-de-en"), tmp_path / "model")
    return RunFolder(tmp_path / "model")


@pytest.mark.parametrize("name", pretrained.names())
def test_every_shipped_model_has_one_that_agrees_with_its_config(name: str) -> None:
    folder = RunFolder(pretrained.folder(name))
    assert folder.manifest_file.is_file()
    assert Manifest.load(folder.manifest_file) == Manifest.of(folder.settings())


def test_a_model_loads_after_a_training_field_was_renamed(model: RunFolder) -> None:
    expected = stacl.load("photos-de-en").translate(SENTENCE, "wait-k:3")
    config = model.config.read_text(encoding="utf-8")
    model.config.write_text(config.replace("smoothing =", "a_name_of_tomorrow ="), encoding="utf-8")
    with pytest.raises(UserError, match="a_name_of_tomorrow"):
        model.settings()
    assert stacl.load(model.path).translate(SENTENCE, "wait-k:3") == expected
    model.config.unlink()
    assert stacl.load(model.path).translate(SENTENCE, "wait-k:3") == expected


def test_a_run_of_an_older_version_has_none_and_loads_by_its_config(model: RunFolder) -> None:
    model.manifest_file.unlink()
    assert stacl.load(model.path).manifest == stacl.load("photos-de-en").manifest


def test_a_trained_run_needs_no_config_to_translate(copy_run: Path, tmp_path: Path) -> None:
    shutil.copytree(copy_run, tmp_path / "run", ignore=shutil.ignore_patterns("config.toml", "checkpoints", "data"))
    traces = [stacl.load(folder).translate_lines(["ba be bi"]) for folder in (copy_run, tmp_path / "run")]
    assert traces[0] == traces[1]


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ({"format": 99}, "another version"),
        ({"source": 3}, "manifest"),
        ({"architecture": {"kind": "transformer"}}, "manifest"),
    ],
)
def test_a_wrong_one_is_refused_in_one_line(model: RunFolder, change: dict[str, object], phrase: str) -> None:
    content = json.loads(model.manifest_file.read_text(encoding="utf-8")) | change
    model.manifest_file.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UserError, match=phrase) as caught:
        stacl.load(model.path)
    assert "\n" not in str(caught.value)


def test_a_damaged_one_is_refused(model: RunFolder) -> None:
    model.manifest_file.write_bytes(b'{"format": 1, "sou')
    with pytest.raises(UserError, match="damaged"):
        stacl.load(model.path)
