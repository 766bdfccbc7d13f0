"""SPEC 9.5: a run killed (SIGKILL) at any moment resumes to the same weights, bit for bit."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stacl.runs.checkpoint import checkpoints, load_tensors, model_facts
from stacl.support.files import checksum
from tests.conftest import ROOT, changes, stacl

pytestmark = pytest.mark.slow
RUN = changes(
    data__corpora='["copy:pairs=800,held_out=40"]',
    policy="wait-k:1-4",  # drawn per sentence: the draws must be reproduced too
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


def command(folder: Path, config: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "stacl", "train", str(config), "--out", str(folder), *RUN, *more]


def start(folder: Path, config: Path, *more: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command(folder, config, *more), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def kill_when(process: subprocess.Popen[bytes], moment: Callable[[], object], timeout: float = 120) -> bool:
    """Kill the process once `moment()` is true. False if the process ends before."""
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


def same_weights(one: Path, other: Path) -> None:
    last, expected = checkpoints(one / "checkpoints")[-1], checkpoints(other / "checkpoints")[-1]
    assert last.name == expected.name == "00000060"
    for name in ("weights.safetensors", "optimizer.safetensors"):
        assert checksum(last / name) == checksum(expected / name), name  # pytest would diff the bytes
    assert model_facts(one / "model.safetensors") == model_facts(other / "model.safetensors")
    ours, theirs = load_tensors(one / "model.safetensors"), load_tensors(other / "model.safetensors")
    assert all(ours[name].equal(theirs[name]) for name in theirs)
    assert untimed_log(one) == untimed_log(other)
    assert len(untimed_log(one)) == 4


def untimed_log(folder: Path) -> list[dict[str, Any]]:
    """The log entries without times."""
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{name: value for name, value in entry.items() if name != "seconds"} for entry in entries]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, toy_config: Path) -> Path:
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    subprocess.run(
        command(folder, toy_config),
        check=True,
        capture_output=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return folder


def test_the_same_seed_gives_the_same_weights_and_another_does_not(
    undisturbed: Path, tmp_path: Path, toy_config: Path
) -> None:
    other = start(tmp_path / "other", toy_config, "--set", "train.seed=2")
    assert other.wait(timeout=300) == 0
    with pytest.raises(AssertionError):
        same_weights(tmp_path / "other", undisturbed)


def test_killed_at_many_moments(undisturbed: Path, tmp_path: Path, toy_config: Path) -> None:
    """During preparation, between checkpoints, and while a checkpoint, a snapshot and the model are written."""
    folder = tmp_path / "run"

    def seen(pattern: str) -> Callable[[], bool]:
        return lambda: any(folder.glob(pattern))

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
        # A moment before the last checkpoint may not recur; then the run ends normally.
    assert kills >= 5
    last = stacl("train", "--resume", "--out", folder)
    assert last.returncode == 0, last.stderr
    same_weights(folder, undisturbed)
    assert not list(folder.rglob(".partial-*/*.safetensors"))


def test_a_moved_run_folder_resumes(undisturbed: Path, tmp_path: Path, toy_config: Path) -> None:
    """Resuming needs the run folder only: no corpus and no config file, at any path."""
    here, there = tmp_path / "here", tmp_path / "there" / "moved"
    assert kill_when(start(here, toy_config), (here / "checkpoints" / "00000028").exists)
    there.parent.mkdir()
    shutil.move(here, there)
    done = stacl("train", "--resume", "--out", there, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "resumed" in done.stderr
    same_weights(there, undisturbed)


def test_a_finished_run_can_be_given_more_steps(undisturbed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(undisturbed, folder)
    again = stacl("train", "--resume", "--out", folder)
    assert again.returncode == 0
    assert "has already finished" in again.stderr
    more = stacl("train", "--resume", "--out", folder, "--set", "train.steps=62")
    assert more.returncode == 0, more.stderr
    assert checkpoints(folder / "checkpoints")[-1].name == "00000062"


def test_an_interrupt_says_how_to_resume(tmp_path: Path, toy_config: Path) -> None:
    folder = tmp_path / "run"
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    endless = command(folder, toy_config, "--set", "train.steps=1000000")
    process = subprocess.Popen(
        endless,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        # A shell ignores SIGINT for background jobs, possibly including this test.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        while not any((folder / "checkpoints").glob("0*")):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "--resume" in error
    assert "Traceback" not in error
