"""`stacl export`: the exported folder translates without torch, with the same output."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stacl import api
from stacl.config import Config, DataSettings, ModelSettings
from stacl.corpora.base import corpus
from stacl.export import onnx
from stacl.runs import pretrained
from stacl.support.errors import UserError
from tests.conftest import stacl

pytestmark = pytest.mark.slow


def test_an_exported_run_translates_like_the_run(copy_run: Path, tmp_path: Path) -> None:
    done = stacl("export", copy_run, tmp_path / "fast")
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip().endswith("MB")
    lines = [source for source, _ in corpus("copy").open("test")][:40]
    ours, theirs = (
        [trace.target for trace in api.load(folder).translate_lines(lines)] for folder in (copy_run, tmp_path / "fast")
    )
    assert sum(one == other for one, other in zip(ours, theirs, strict=True)) >= 38  # int8 rounds
    said = stacl("translate", tmp_path / "fast", input="\n".join(lines))
    assert said.stdout.splitlines() == [" ".join(words) for words in theirs]


def test_another_vocabulary_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "de-en"
    shutil.copytree(pretrained.folder("de-en"), folder)
    api.load(folder)
    shutil.copy(pretrained.folder("zh-en") / "vocabulary" / "source.model", folder / "vocabulary")
    with pytest.raises(UserError, match=r"source\.model is damaged"):
        api.load(folder)


def test_mistakes(copy_run: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for arguments, message in [
        ((copy_run, tmp_path / "there"), "already exists"),
        ((tmp_path / "nowhere", tmp_path / "out"), "has no trained weights"),
        ((pretrained.folder("de-en"), tmp_path / "out"), "has no trained weights"),
    ]:
        done = stacl("export", *arguments)
        assert done.returncode == 2
        assert done.stdout == ""
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_folders_of_the_data_are_removed() -> None:
    data = DataSettings(source="de", target="en", root="/home/me", corpora=["multi30k*2", "files:path=/home/me/said*3"])
    kept = onnx._without_folders(Config(data=data, model=ModelSettings(start="/home/me/runs/first")))
    assert kept.data.corpora == ["multi30k*2", "files:path=said*3"]
    assert (kept.data.root, kept.model.start) == ("", "first")
