"""SPEC 9.5: killed at any moment, a run resumes to the same weights, bit for bit. Really killed: SIGKILL."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from stacl.runs.checkpoint import checkpoints, load_tensors, model_facts
from stacl.support.files import checksum
from tests.conftest import ROOT, changes, stacl

pytestmark = pytest.mark.slow
RUN = changes(
    data__corpora='["copy:pairs=800,held_out=40"]',
    policy="wait-k:1-4",  # drawn per sentence: the draws must come again, too
    model__dropout=0.2,
    train__budget=512,
    train__steps=60,
    train__accumulate=2,
    train__validate_every=15,
    train__save_every=7,
    train__bleu_lines=10,
    train__average=3,
    train__patience=0,
)


def command(folder, config, *more):
    return [sys.executable, "-m", "stacl", "train", str(config), "--out", str(folder), *RUN, *more]


def start(folder, config, *more):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command(folder, config, *more), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def kill_when(process, moment, timeout: float = 120) -> bool:
    """Kill as soon as `moment()` holds; False if the process ended before."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return False
        if moment():
            process.send_signal(signal.SIGKILL)
            process.wait()
            return True
        time.sleep(0.0005)
    process.kill()
    raise AssertionError("the moment to kill never came")


def same_weights(one, other) -> None:
    last, expected = checkpoints(one / "checkpoints")[-1], checkpoints(other / "checkpoints")[-1]
    assert last.name == expected.name == "00000060"
    for name in ("weights.safetensors", "optimizer.safetensors"):
        assert checksum(last / name) == checksum(expected / name), name  # not the bytes: pytest would diff them
    assert model_facts(one / "model.safetensors") == model_facts(other / "model.safetensors")
    ours, theirs = load_tensors(one / "model.safetensors"), load_tensors(other / "model.safetensors")
    assert all(ours[name].equal(theirs[name]) for name in theirs)
    assert untimed_log(one) == untimed_log(other)
    assert len(untimed_log(one)) == 4


def untimed_log(folder) -> list[dict]:
    """All that was logged but the clock."""
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{name: value for name, value in entry.items() if name != "seconds"} for entry in entries]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, toy_config):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    subprocess.run(
        command(folder, toy_config),
        check=True,
        capture_output=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return folder


def test_the_same_seed_gives_the_same_weights_and_another_does_not(undisturbed, tmp_path, toy_config):
    other = start(tmp_path / "other", toy_config, "--set", "train.seed=2")
    assert other.wait(timeout=300) == 0
    with pytest.raises(AssertionError):
        same_weights(tmp_path / "other", undisturbed)


def test_killed_again_and_again(undisturbed, tmp_path, toy_config):
    """While preparing, between checkpoints, while a checkpoint, a snapshot and the model are being written."""
    folder = tmp_path / "run"
    seen = lambda pattern: lambda: any(folder.glob(pattern))  # noqa: E731
    moments = [
        seen("data/words.tsv"),
        seen("vocabulary/source.model"),
        seen("checkpoints/.partial-*"),
        seen("checkpoints/00000014"),
        seen("snapshots/.partial-*"),
        seen(".partial-model.safetensors"),
        seen("checkpoints/00000042"),
        seen("checkpoints/.partial-00000049"),
    ]
    kills = 0
    for moment in moments:
        kills += kill_when(start(folder, toy_config, *(["--resume"] if folder.exists() else [])), moment)
        # A moment may lie before the last checkpoint and never come again: then the run ends by itself.
    assert kills >= 5
    last = stacl("train", "--resume", "--out", folder)
    assert last.returncode == 0, last.stderr
    same_weights(folder, undisturbed)
    assert not list(folder.rglob(".partial-*/*.safetensors"))


def test_moved_to_another_place_it_goes_on(undisturbed, tmp_path, toy_config):
    """A run folder is enough: no corpus, no config file, another path."""
    here, there = tmp_path / "here", tmp_path / "there" / "moved"
    assert kill_when(start(here, toy_config), (here / "checkpoints" / "00000028").exists)
    there.parent.mkdir()
    shutil.move(here, there)
    done = stacl("train", "--resume", "--out", there, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "resumed" in done.stderr
    same_weights(there, undisturbed)


def test_a_finished_run_can_be_given_more_steps(undisturbed, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(undisturbed, folder)
    again = stacl("train", "--resume", "--out", folder)
    assert again.returncode == 0
    assert "finished already" in again.stderr
    more = stacl("train", "--resume", "--out", folder, "--set", "train.steps=62")
    assert more.returncode == 0, more.stderr
    assert checkpoints(folder / "checkpoints")[-1].name == "00000062"


def test_interrupted_by_hand_it_says_how_to_go_on(tmp_path, toy_config):
    folder = tmp_path / "run"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    endless = command(folder, toy_config, "--set", "train.steps=1000000")
    process = subprocess.Popen(
        endless,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        # A shell starts what runs in its background with Ctrl-C ignored, and so perhaps this test.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while not any((folder / "checkpoints").glob("0*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "--resume" in said
    assert "Traceback" not in said
