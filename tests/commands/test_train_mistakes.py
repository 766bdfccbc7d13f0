"""Mistakes with `stacl train`: one clear line, exit code 2, and saved files are kept."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from stacl import api
from stacl.__main__ import main
from stacl.config import TrainSettings
from stacl.policies.base import policy
from stacl.runs.checkpoint import checkpoints
from stacl.runs.folder import RunFolder
from stacl.support.errors import UserError
from stacl.support.files import sole_use
from stacl.training import optim, prepare, trainer
from tests.conftest import changes, complaint
from tests.helpers import tiny_models


def files(tmp_path: Path, source: str, target: str) -> Path:
    (tmp_path / "a.de").write_text(source, encoding="utf-8")
    (tmp_path / "a.en").write_text(target, encoding="utf-8")
    (tmp_path / "own.toml").write_text(
        f'[data]\nsource = "de"\ntarget = "en"\ntrain_files = ["{tmp_path}/a.de", "{tmp_path}/a.en"]\n'
        f'valid_files = ["{tmp_path}/a.de", "{tmp_path}/a.en"]\n'
    )
    return tmp_path / "own.toml"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("train.stepz=3", "there is no train.stepz; did you mean steps?"),
        ("trian.steps=3", "there is no trian; did you mean train?"),
        ("train.steps=many", "train.steps must be a whole number, 1 or more, not 'many'"),
        ("train.steps=0", "train.steps must be a whole number, 1 or more"),
        ("train.cooldown=-5", "train.cooldown must be a whole number, 0 or more"),
        ("model.dropout=1.5", "model.dropout must be a number from 0.0 to 0.99"),
        ("model.preset=huge", "one of tiny, small, base"),
        ("model.encoder=causl", "one of causal, prefix"),
        ("model.heads=3", "must be a multiple of model.heads (3)"),
        ("model.kind=lstm", "no model is called 'lstm'"),
        ("policy=wait-k:0", "k must be a whole number from 1"),
        ("policy=wait-k:-4", "k must be a whole number from 1"),
        ("policy=wait-k:3,c=1", "c must be below 1"),
        ("policy=wait", "no policy is called 'wait'"),
        ("data.corpora=copi", "no corpus is called 'copi'"),
        ("data.source=", "must name the languages"),
        ("train.device=tpu", "must be auto, cpu, cuda or cuda:N, not 'tpu'"),
        ("train.device=cpu:x", "must be auto, cpu, cuda or cuda:N, not 'cpu:x'"),
        ("train", "--set takes section.field=value"),
        ("text.vocabulary=60000", "too small for 60000 pieces; set text.vocabulary to at most"),
        ("text.vocabulary=100", "must be a whole number from 300"),
        ("data.max_words=1", "the corpus is empty"),
        ("train.seed=-1", "train.seed must be a whole number from 0"),
        ("model.width=-8", "model.width must be a whole number from 0"),
        ("train.beta2=1", "train.beta2 must be a number from 0.0"),
        ("data.corpora=files:splits=x", "corpus files has no option 'splits'"),
    ],
)
def test_wrong_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quick: tuple[Path, *tuple[str, ...]], change: str, message: str
) -> None:
    said = complaint(capsys, "train", *quick, "--out", tmp_path / "run", "--set", change)
    assert message in said
    assert said.startswith("stacl train: ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ('data.valid=["copy/nope"]', "corpus copy has no split 'nope'"),
        ('data.valid_files=["/nowhere.a", "/nowhere.b"]', "/nowhere.a: no such file"),
        ("model.start=nosuch", "no model nosuch"),
        ("train.device=cuda", "no GPU is available"),
        ('data.unseen=["copy"]', "data.unseen takes NAME/SPLIT"),
    ],
)
def test_simple_mistakes_are_reported_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quick: tuple[Path, *tuple[str, ...]], change: str, message: str
) -> None:
    if change.endswith("cuda") and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    assert main(["train", *map(str, quick), "--out", str(tmp_path / "run"), "--set", change]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert message in said


def test_files_that_are_missing_misaligned_empty_or_not_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quick: tuple[Path, *tuple[str, ...]]
) -> None:
    config = files(tmp_path, "eins\nzwei\n", "one\n")
    assert "lines" in complaint(capsys, "train", config, "--out", tmp_path / "r1")
    config = files(tmp_path, "", "")
    assert "empty" in complaint(capsys, "train", config, "--out", tmp_path / "r2")
    config = files(tmp_path, "eins\n", "one\n")
    (tmp_path / "a.de").write_bytes(b"sch\xf6n\n")
    assert "line 1" in complaint(capsys, "train", config, "--out", tmp_path / "r3")
    (tmp_path / "a.de").unlink()
    assert "a.de" in complaint(capsys, "train", config, "--out", tmp_path / "r4")
    assert "no config file" in complaint(capsys, "train", tmp_path / "absent.toml")
    (tmp_path / "broken.toml").write_text("[train\n")
    assert "not a readable TOML" in complaint(capsys, "train", tmp_path / "broken.toml")
    assert "no config; give one" in complaint(capsys, "train")
    assert "not a run folder" in complaint(capsys, "train", "--resume", "--out", tmp_path / "nothing")


def test_a_corpus_that_is_only_for_measuring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = files(tmp_path, "eins\n", "one\n")
    changed = changes(data__train_files="[]", data__corpora='["multi30k", "eval-deen"]')
    said = complaint(capsys, "train", config, "--out", tmp_path / "run", *changed)
    assert "corpus eval-deen has no training split; its splits are" in said


def test_odd_white_space_in_a_validation_text_does_not_split_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Some white space looks like a line end. Source and target must stay aligned."""
    odd = "ein\u2028Mann\x85geht\tund\rlacht\x0c jetzt"
    config = files(tmp_path, f"{odd}\nzwei Frauen\n", "a man walks and laughs now\ntwo\u2029women\n")
    options = changes(train__steps=1, train__validate_every=1, train__average=1)
    assert main(["train", str(config), "--out", str(tmp_path / "run"), *options, "--set", "text.vocabulary=310"]) == 0
    lines = (tmp_path / "run" / "data" / "valid.tsv").read_text(encoding="utf-8").splitlines()
    assert lines == ["ein Mann geht und lacht jetzt\ta man walks and laughs now", "zwei Frauen\ttwo women"]


def test_a_policy_that_decreases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quick: tuple[Path, *tuple[str, ...]]
) -> None:
    (tmp_path / "mine.py").write_text("def down(t): return 9 - t\n")
    said = complaint(capsys, "train", *quick, "--out", tmp_path / "run", "--set", f"policy={tmp_path}/mine.py:down")
    assert "must not decrease" in said


def test_a_failed_start_leaves_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quick: tuple[Path, *tuple[str, ...]]
) -> None:
    """After the mistake is fixed, the same command works."""
    complaint(capsys, "train", *quick, "--out", tmp_path / "run", "--set", "text.vocabulary=60000")
    assert main(["train", *map(str, quick), "--out", str(tmp_path / "run")]) == 0


def test_a_warm_start_that_does_not_fit(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], quick: tuple[Path, *tuple[str, ...]]
) -> None:
    """The mistake is found after the data is prepared. After it is fixed, the run continues from there."""
    options = [*quick, "--out", tmp_path / "next", "--set", f"model.start={trained}"]
    said = complaint(capsys, "train", *options, "--set", "model.width=64")
    assert "does not belong to this model" in said
    assert main(["train", *map(str, options), "--resume"]) == 0


def test_a_gradient_that_is_not_finite_is_skipped() -> None:
    model = tiny_models()["rnn"]
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    optimizer = optim.build(model, TrainSettings())
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, math.nan)
    with pytest.raises(UserError, match="the gradient is not finite"):
        optim.step(optimizer, model, 1e-3, 0.0, torch.amp.GradScaler("cpu", enabled=False))
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_a_vocabulary_that_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = files(tmp_path, "der kleine Hund schläft heute\n" * 30, "the small dog is asleep today\n" * 30)
    options = changes(text__shared="false", text__vocabulary=310, train__steps=1, train__validate_every=1)
    assert main(["train", str(config), "--out", str(tmp_path / "run"), *options]) == 0
    (tmp_path / "run" / "vocabulary" / "target.model").unlink()
    with pytest.raises(UserError, match=r"vocabulary .*target\.model does not exist"):
        api.load(tmp_path / "run")


def test_a_rate_that_never_decreases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quick: tuple[Path, *tuple[str, ...]]
) -> None:
    short = changes(train__epochs=1, train__steps=1000, train__schedule="cosine")
    assert main(["train", *map(str, quick), *short, "--out", str(tmp_path / "run")]) == 0
    assert "the schedule ends at train.steps = 1,000; set train.steps=" in capsys.readouterr().err


def test_incomplete_launcher_variables(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    quick: tuple[Path, *tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("RANK", raising=False)
    said = complaint(capsys, "train", *quick, "--out", tmp_path / "run")
    assert "start several processes with torchrun" in said


def test_a_vocabulary_is_learned_from_all_of_the_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last corpora are included too."""
    monkeypatch.setattr(prepare, "VOCABULARY_LINES", 40)
    config = files(tmp_path, "der Hund\n" * 100 + "Zebrastreifen\n" * 100, "the dog\n" * 100 + "crossing\n" * 100)
    options = changes(text__vocabulary=320, data__duplicates="true", train__steps=1, train__validate_every=1)
    assert main(["train", str(config), "--out", str(tmp_path / "run"), *options]) == 0
    assert len(api.load(tmp_path / "run").source_pieces.encode_word("Zebrastreifen")) < 8


def test_unusable_run_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quick: tuple[Path, *tuple[str, ...]]
) -> None:
    (tmp_path / "a file").write_text("precious\n")
    assert "is a file, not a run folder" in complaint(capsys, "train", *quick, "--out", tmp_path / "a file")
    (tmp_path / "own" / "vocabulary").mkdir(parents=True)
    assert "has a vocabulary but is not a run" in complaint(capsys, "train", *quick, "--out", tmp_path / "own")
    assert (tmp_path / "own" / "vocabulary").is_dir()


def test_two_vocabularies_are_not_exchanged(tmp_path: Path, quick: tuple[Path, *tuple[str, ...]]) -> None:
    """For the other direction of a run with two vocabularies, German must not use the English one."""
    config = files(tmp_path, "der kleine Hund schläft heute\n" * 30, "the small dog is asleep today\n" * 30)
    common = {"text__shared": "false", "text__vocabulary": 310, "train__steps": 1, "train__validate_every": 1}
    assert main(["train", str(config), "--out", str(tmp_path / "there"), *changes(**common)]) == 0
    pair = f'["{tmp_path}/a.en", "{tmp_path}/a.de"]'
    back = {"data__source": "en", "data__target": "de", "data__train_files": pair, "data__valid_files": pair}
    options = changes(**common, **back, model__start=str(tmp_path / "there"))
    assert main(["train", str(config), "--out", str(tmp_path / "back"), *options]) == 0
    source, target = RunFolder(tmp_path / "back").vocabularies()
    assert len(source.encode_word("asleep")) < len(target.encode_word("asleep"))
    assert len(target.encode_word("schläft")) < len(source.encode_word("schläft"))


def test_a_full_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str], quick: tuple[Path, *tuple[str, ...]]) -> None:
    """On a real file system that is too small: the last complete checkpoint is kept and can be resumed."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system to fill")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        folder = disk / "run"
        short = [*map(str, quick), "--out", str(folder)]
        assert main(["train", *short, "--set", "train.steps=2"]) == 0
        free = shutil.disk_usage(disk).free
        (disk / "ballast").write_bytes(b"x" * (free - 100_000))
        resume = ["train", "--resume", "--out", str(folder), "--set", "train.steps=4"]
        assert "the disk is full" in complaint(capsys, *resume)
        assert [path.name for path in checkpoints(folder / "checkpoints")] == ["00000002"]
        assert not list(folder.rglob(".partial*"))
        (disk / "ballast").unlink()
        assert main(resume) == 0
    finally:
        subprocess.run(["umount", disk], check=True)


def test_two_processes_cannot_train_in_one_folder(capsys: pytest.CaptureFixture[str], trained: Path) -> None:
    before = (trained / "config.toml").read_bytes(), checkpoints(trained / "checkpoints")
    with sole_use(trained, "training"):
        said = complaint(capsys, "train", "--resume", "--out", trained, "--set", "train.steps=6")
        assert "another process is training in" in said
    assert ((trained / "config.toml").read_bytes(), checkpoints(trained / "checkpoints")) == before
    # The folder is free again when the other process has ended.
    assert main(["train", "--resume", "--out", str(trained), "--set", "train.steps=6"]) == 0


def test_loading_a_model_runs_no_code(tmp_path: Path, quick: tuple[Path, *tuple[str, ...]]) -> None:
    """A run folder may come from an untrusted source, and its config may name any file."""
    own, folder = tmp_path / "mine.py", tmp_path / "run"
    own.write_text("def g(t): return t + 1\n")
    assert main(["train", *map(str, quick), "--out", str(folder), "--set", f"policy={own}:g"]) == 0
    own.write_text("raise SystemExit('this file was run')\n")
    translator = api.load(folder)
    assert str(translator.translate_lines(["ba"], "wait-k:1")[0].policy) == "wait-k:1"
    with pytest.raises(UserError, match=r"was trained under .*mine.py:g, a file that is not part of it"):
        translator.stream()
    assert str(api.load(folder, policy="wait-k:2").policy) == "wait-k:2"
    own.write_text("def g(t): return t + 1\n")
    assert api.load(folder, policy=f"{own}:g").policy.schedule(9, 3) == [2, 3, 4]


def test_a_policy_that_never_reads_trains_with_any_encoder(
    tmp_path: Path, quick: tuple[Path, *tuple[str, ...]]
) -> None:
    changed = ("--set", "policy=none", "--set", "model.encoder=prefix", "--set", "train.steps=2")
    assert main(["train", *map(str, quick), "--out", str(tmp_path / "run"), *changed]) == 0


def test_a_policy_that_is_edited_during_training_stays_the_same(
    tmp_path: Path, quick: tuple[Path, *tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In training, in sampling, in validation, and in the saved fingerprint."""
    mine, once = tmp_path / "mine.py", trainer.Trainer.resume
    mine.write_text("def g(t): return t + 1\n")
    outline = policy(f"{mine}:g").fingerprint()

    def edited(self: Any) -> Any:
        mine.write_text("half a defi")
        return once(self)

    monkeypatch.setattr(trainer.Trainer, "resume", edited)
    own = [f"policy={mine}:g", "train.samples=2", "train.bleu_lines=0", "train.select=loss"]
    options = [part for change in own for part in ("--set", change)]
    assert main(["train", *map(str, quick), "--out", str(tmp_path / "run"), *options]) == 0
    assert json.loads((tmp_path / "run" / "schedule.json").read_text()) == outline


def test_a_missing_data_folder_names_the_option_of_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("STACL_DATA", raising=False)
    config = Path(__file__).parents[2] / "configs" / "multi30k-de-en.toml"
    assert main(["train", str(config), "--out", str(tmp_path / "run")]) == 2
    message = capsys.readouterr().err
    assert "--set data.root=FOLDER" in message
    assert "STACL_DATA" in message
    assert "--root" not in message
