"""Going on with a run that is another, damaged or finished: a clear word, and nothing is lost."""

from __future__ import annotations

import dataclasses
import json
import shutil

from stacl import api
from stacl.__main__ import main
from stacl.runs.checkpoint import checkpoints, model_facts
from stacl.training import trainer
from tests.conftest import changes, complaint


def test_a_run_is_not_overwritten(trained, capsys, quick):
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("*") if path.is_file()}
    assert "holds a run already" in complaint(capsys, "train", *quick, "--out", trained)
    said = complaint(capsys, "train", "--resume", "--out", trained, "--set", "model.width=64")
    assert "begun with another model.width" in said
    for change, message in (
        ("train.optimizer=muon", "begun with another train.optimizer"),
        ("train.seed=9", "begun with another train.seed"),
        ("policy=wait-k:7", "begun under wait-k:1, not wait-k:7"),
    ):
        assert message in complaint(capsys, "train", "--resume", "--out", trained, "--set", change)
    assert before == {path: path.stat().st_mtime_ns for path in trained.rglob("*") if path.is_file()}


def test_a_run_without_its_data_is_a_run_still(trained, capsys, quick):
    """Somebody removed what was prepared, to save space: the vocabulary stays the one that the weights belong to."""
    shutil.rmtree(trained / "data")
    vocabulary, before = trained / "vocabulary" / "source.model", api.load(trained).translate("ba be")
    assert "holds a run already" in complaint(capsys, "train", *quick, "--out", trained, "--set", "train.seed=9")
    kept = vocabulary.stat().st_mtime_ns
    assert main(["train", "--resume", "--out", str(trained), "--set", "train.steps=4"]) == 0
    assert vocabulary.stat().st_mtime_ns == kept
    assert api.load(trained).translate("ba be") == before


def test_the_best_by_another_measure_begins_anew(trained, capsys):
    """A BLEU is above every negative loss: compared with it, no later model would ever be the best."""
    assert model_facts(trained / "model.safetensors")["step"] <= 4
    changed = ["--set", "train.select=loss", "--set", "train.steps=6"]
    assert main(["train", "--resume", "--out", str(trained), *changed]) == 0
    assert model_facts(trained / "model.safetensors")["step"] == 6
    # and the other way round
    changed = ["--set", "train.select=bleu", "--set", "train.steps=8"]
    assert main(["train", "--resume", "--out", str(trained), *changed]) == 0
    assert "best model from step 8" in capsys.readouterr().err


def test_as_many_right_words_and_a_lower_loss_are_better(quick, tmp_path, capsys, monkeypatch):
    """At the beginning nothing is right, and BLEU is 0 again and again; the loss falls all the same."""
    measured = trainer.validate
    monkeypatch.setattr(trainer, "validate", lambda *given: dataclasses.replace(measured(*given), bleu=0.0))
    out = tmp_path / "run"
    early = changes(train__steps=6, train__validate_every=2, train__patience=2, train__bleu_lines=4)
    assert main(["train", *map(str, quick), "--out", str(out), *early]) == 0
    said = capsys.readouterr().err
    assert said.count("BLEU 0.00") == 3
    assert "all 6 steps are done; best model from step 6" in said


def test_another_precision_on_the_way(trained, capsys):
    assert main(["train", "--resume", "--out", str(trained), *changes(train__precision="float16", train__steps=6)]) == 0
    assert "train.precision is float16 from here on; it was auto" in capsys.readouterr().err


def test_larger_batches_on_the_way(trained, capsys):
    """The epoch has fewer of them than were done already: the next one begins."""
    changes = ["--set", "train.budget=100000", "--set", "train.steps=6"]
    assert main(["train", "--resume", "--out", str(trained), *changes]) == 0
    said = capsys.readouterr().err
    assert "train.budget is 100000 from here on; it was" in said
    assert "all 6 steps are done" in said


def test_a_damaged_checkpoint_is_named_and_the_one_before_serves(trained, capsys):
    newest = checkpoints(trained / "checkpoints")[-1]
    weights = newest / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 1
    weights.write_bytes(content)
    said = complaint(capsys, "train", "--resume", "--out", trained)
    assert f"{newest.name}/weights.safetensors is damaged; remove the folder" in said
    shutil.rmtree(newest)
    assert main(["train", "--resume", "--out", str(trained)]) == 0
    assert "resumed" in capsys.readouterr().err
    assert checkpoints(trained / "checkpoints")[-1].name == newest.name


def test_foreign_and_truncated_checkpoints(trained, capsys, tmp_path):
    newest = checkpoints(trained / "checkpoints")[-1]
    state = json.loads((newest / "state.json").read_text())
    (newest / "state.json").write_text(json.dumps(state | {"format": 99}))
    assert "another version" in complaint(capsys, "train", "--resume", "--out", trained)
    (newest / "state.json").write_text(json.dumps(state)[:40])
    assert "is damaged, or is no checkpoint" in complaint(capsys, "train", "--resume", "--out", trained)


def test_lines_that_a_run_did_not_write_are_named(trained, capsys):
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
    log.write_bytes(before + b'{"step": 4, "los')  # cut by a kill: nothing is lost that will not happen again
    assert main([*map(str, resume)]) == 0
    assert [json.loads(line)["step"] for line in log.read_text().splitlines()] == [2, 4, 6]


def test_a_mean_cannot_be_resumed(trained, capsys):
    """Without a checkpoint it would begin anew, and overwrite the weights."""
    shutil.rmtree(trained / "checkpoints")
    shutil.rmtree(trained / "data")
    before = (trained / "model.safetensors").read_bytes()
    assert "no training that could go on" in complaint(capsys, "train", "--resume", "--out", trained)
    assert (trained / "model.safetensors").read_bytes() == before


def test_what_is_missing_of_the_data_is_made_again(trained, capsys):
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


def test_a_policy_whose_file_was_edited_is_another(tmp_path, capsys, quick):
    """Also in what no schedule shows: what it draws for each sentence."""
    own, run = tmp_path / "g.py", tmp_path / "own"
    own.write_text(DRAWING.format(most=3))
    assert main(["train", *map(str, quick), "--out", str(run), "--set", f"policy={own}:Mine"]) == 0
    assert main(["train", "--resume", "--out", str(run), "--set", "train.steps=5"]) == 0
    own.write_text(DRAWING.format(most=9))
    said = complaint(capsys, "train", "--resume", "--out", run, "--set", "train.steps=6")
    assert "is not what it was when" in said
    kept = run / "schedule.json"
    kept.write_text(json.dumps(json.loads(kept.read_text())[:100]))  # as older runs have it
    own.write_text(DRAWING.format(most=9).replace("1 + t", "2 + t"))
    assert "is not what it was when" in complaint(capsys, "train", "--resume", "--out", run)
    own.write_text(DRAWING.format(most=3))
    assert main(["train", "--resume", "--out", str(run), "--set", "train.steps=6"]) == 0
    assert len(json.loads(kept.read_text())) == 101


def test_a_finished_run_keeps_the_config_that_it_was_trained_with(trained, capsys):
    before = (trained / "config.toml").read_bytes()
    assert main(["train", "--resume", "--out", str(trained), "--set", "train.rate=0.5"]) == 0
    assert "has finished already" in capsys.readouterr().err
    assert (trained / "config.toml").read_bytes() == before
