"""Resuming a run that differs, is damaged or has finished: a clear error, and no data is lost."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from stacl import api
from stacl.__main__ import main
from stacl.runs.checkpoint import checkpoints, model_facts
from stacl.training import trainer
from tests.conftest import changes, complaint


def test_a_run_is_not_overwritten(
    trained: Path, capsys: pytest.CaptureFixture[str], quick: tuple[Path, *tuple[str, ...]]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("*") if path.is_file()}
    assert "already holds a run" in complaint(capsys, "train", *quick, "--out", trained)
    said = complaint(capsys, "train", "--resume", "--out", trained, "--set", "model.width=64")
    assert "started with a different model.width" in said
    for change, message in (
        ("train.optimizer=muon", "started with a different train.optimizer"),
        ("train.seed=9", "started with a different train.seed"),
        ("policy=wait-k:7", "started with wait-k:1, not wait-k:7"),
    ):
        assert message in complaint(capsys, "train", "--resume", "--out", trained, "--set", change)
    assert before == {path: path.stat().st_mtime_ns for path in trained.rglob("*") if path.is_file()}


def test_a_run_without_its_data_can_be_resumed(
    trained: Path, capsys: pytest.CaptureFixture[str], quick: tuple[Path, *tuple[str, ...]]
) -> None:
    """The encoded data was removed to save space. The vocabulary must stay, because the weights belong to it."""
    shutil.rmtree(trained / "data")
    vocabulary, before = trained / "vocabulary" / "source.model", api.load(trained).translate("ba be")
    assert "already holds a run" in complaint(capsys, "train", *quick, "--out", trained, "--set", "train.seed=9")
    kept = vocabulary.stat().st_mtime_ns
    assert main(["train", "--resume", "--out", str(trained), "--set", "train.steps=4"]) == 0
    assert vocabulary.stat().st_mtime_ns == kept
    assert api.load(trained).translate("ba be") == before


def test_the_best_model_is_reset_when_the_measure_changes(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BLEU is always above a negative loss. If they were compared, no later model would be the best."""
    assert model_facts(trained / "model.safetensors")["step"] <= 4
    changed = ["--set", "train.select=loss", "--set", "train.steps=6"]
    assert main(["train", "--resume", "--out", str(trained), *changed]) == 0
    assert model_facts(trained / "model.safetensors")["step"] == 6
    # and in the other direction
    changed = ["--set", "train.select=bleu", "--set", "train.steps=8"]
    assert main(["train", "--resume", "--out", str(trained), *changed]) == 0
    assert "best model from step 8" in capsys.readouterr().err


def test_at_equal_bleu_a_lower_loss_is_better(
    quick: tuple[Path, *tuple[str, ...]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At the start BLEU stays 0 while the loss falls."""
    measured = trainer.validate  # type: ignore[attr-defined]
    monkeypatch.setattr(trainer, "validate", lambda *given: dataclasses.replace(measured(*given), bleu=0.0))
    out = tmp_path / "run"
    early = changes(train__steps=6, train__validate_every=2, train__patience=2, train__bleu_lines=4)
    assert main(["train", *map(str, quick), "--out", str(out), *early]) == 0
    said = capsys.readouterr().err
    assert said.count("BLEU 0.00") == 3
    assert "all 6 steps are done; best model from step 6" in said


def test_resume_with_another_precision(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--resume", "--out", str(trained), *changes(train__precision="float16", train__steps=6)]) == 0
    assert "train.precision changes from auto to float16" in capsys.readouterr().err


def test_resume_with_larger_batches(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The epoch now has fewer batches than were already done, so the next epoch begins."""
    changes = ["--set", "train.budget=100000", "--set", "train.steps=6"]
    assert main(["train", "--resume", "--out", str(trained), *changes]) == 0
    said = capsys.readouterr().err
    assert "train.budget changes from" in said
    assert "all 6 steps are done" in said


def test_a_damaged_checkpoint_is_named_and_the_previous_one_works(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest = checkpoints(trained / "checkpoints")[-1]
    weights = newest / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 1
    weights.write_bytes(content)
    said = complaint(capsys, "train", "--resume", "--out", trained)
    assert f"{newest.name}/weights.safetensors is damaged; remove " in said
    shutil.rmtree(newest)
    assert main(["train", "--resume", "--out", str(trained)]) == 0
    assert "resumed" in capsys.readouterr().err
    assert checkpoints(trained / "checkpoints")[-1].name == newest.name


def test_foreign_and_truncated_checkpoints(trained: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    newest = checkpoints(trained / "checkpoints")[-1]
    state = json.loads((newest / "state.json").read_text())
    (newest / "state.json").write_text(json.dumps(state | {"format": 99}))
    assert "another version" in complaint(capsys, "train", "--resume", "--out", trained)
    (newest / "state.json").write_text(json.dumps(state)[:40])
    assert "is damaged or not a stacl checkpoint" in complaint(capsys, "train", "--resume", "--out", trained)


def test_lines_that_a_run_did_not_write_are_named(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    resume = ("train", "--resume", "--out", trained, "--set", "train.steps=6")
    valid, log = trained / "data" / "valid.tsv", trained / "log.jsonl"
    for file, damage, message in (
        (valid, b"no tab\n", "valid.tsv:2 is damaged: expected a source, a tab and its translation"),
        (valid, b"one\ttab\ttoo many\n", "valid.tsv:2 is damaged"),
        (valid, b"no\ttext: \xff\n", "valid.tsv:2 is damaged"),
        (log, b"[1]\n", "log.jsonl:2 is not an entry of a training log"),
        (log, b"{}\n", "log.jsonl:2 is not an entry"),
        (log, b'{"step": "x"}\n', "log.jsonl:2 is not an entry"),
    ):
        before = file.read_bytes()
        first, *rest = before.splitlines(keepends=True)
        file.write_bytes(b"".join([first, damage, *rest]))
        assert message in complaint(capsys, *resume)
        file.write_bytes(before)
    log.write_bytes(before + b'{"step": 4, "los')  # cut off by a kill; the resumed run writes it again
    assert main([*map(str, resume)]) == 0
    assert [json.loads(line)["step"] for line in log.read_text().splitlines()] == [2, 4, 6]


def test_a_mean_cannot_be_resumed(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a checkpoint it would start from scratch and overwrite the weights."""
    shutil.rmtree(trained / "checkpoints")
    shutil.rmtree(trained / "data")
    before = (trained / "model.safetensors").read_bytes()
    assert "has a model but no checkpoint" in complaint(capsys, "train", "--resume", "--out", trained)
    assert (trained / "model.safetensors").read_bytes() == before


def test_missing_data_is_encoded_again(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (trained / "data" / "valid.tsv").unlink()
    assert main(["train", "--resume", "--out", str(trained), "--set", "train.steps=6"]) == 0
    assert (trained / "data" / "valid.tsv").exists()
    assert not (trained / "data" / "words.tsv").exists()


DRAWING = """
from stacl.policies.base import Policy
from stacl.policies.wait_k import WaitK
class Mine(Policy):
    def wish(self, t): return 1 + t
    def draw(self, rng, length): return WaitK(rng.randint(1, {most}), unit=self.unit)
    def spec(self): return "mine"
"""


def test_an_edited_policy_file_prevents_resuming(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], quick: tuple[Path, *tuple[str, ...]]
) -> None:
    """This includes changes that the schedule does not show: what it samples for each sentence."""
    own, run = tmp_path / "g.py", tmp_path / "own"
    own.write_text(DRAWING.format(most=3))
    assert main(["train", *map(str, quick), "--out", str(run), "--set", f"policy={own}:Mine"]) == 0
    assert main(["train", "--resume", "--out", str(run), "--set", "train.steps=5"]) == 0
    own.write_text(DRAWING.format(most=9))
    said = complaint(capsys, "train", "--resume", "--out", run, "--set", "train.steps=6")
    assert "has changed since" in said
    kept = run / "schedule.json"
    kept.write_text(json.dumps(json.loads(kept.read_text())[:100]))  # the format of older runs
    own.write_text(DRAWING.format(most=9).replace("1 + t", "2 + t"))
    assert "has changed since" in complaint(capsys, "train", "--resume", "--out", run)
    own.write_text(DRAWING.format(most=3))
    assert main(["train", "--resume", "--out", str(run), "--set", "train.steps=6"]) == 0
    assert len(json.loads(kept.read_text())) == 101


def test_a_finished_run_keeps_the_config_that_it_was_trained_with(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (trained / "config.toml").read_bytes()
    assert main(["train", "--resume", "--out", str(trained), "--set", "train.rate=0.5"]) == 0
    assert "has already finished" in capsys.readouterr().err
    assert (trained / "config.toml").read_bytes() == before
