"""Training in several processes equals training in one. Uses real processes, connections and kills."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from stacl.models.batch import epoch_batches
from stacl.training.distributed import World
from tests.conftest import ROOT, changes, stacl

CORPUS = 'data.corpora=["copy:pairs=600,held_out=40"]'


def options(**more: object) -> list[str]:
    """A quick run with several sentences per batch, and without dropout, which each process draws itself."""
    settings = {"train__steps": 12, "train__validate_every": 6, "train__save_every": 3, "train__budget": 600}
    return [*changes(**(settings | more)), "--set", CORPUS, "--set", "model.dropout=0.0"]


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | more


def torchrun(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "stacl"]
    return subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=300, env=environment(), cwd=ROOT
    )


def pair(*arguments: object, **more: str) -> list[subprocess.Popen[str]]:
    """Two processes as started by torchrun, but without its supervision."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return [
        subprocess.Popen(
            [sys.executable, "-m", "stacl", *map(str, arguments)],
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=environment(
                RANK=str(rank),
                LOCAL_RANK=str(rank),
                WORLD_SIZE="2",
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port),
                **more,
            ),
        )
        for rank in (0, 1)
    ]


def weights(run: Path) -> dict[str, torch.Tensor]:
    """The weights of the last checkpoint, without the biases of attention keys.

    Such a bias shifts all scores of a query equally, so its true gradient is zero, and Adam makes full steps from
    rounding errors.
    """
    last = sorted(path for path in (run / "checkpoints").iterdir() if path.name.isdigit())[-1]
    found = load_file(last / "weights.safetensors")
    for name, tensor in found.items():
        if name.endswith("attention.in_proj.bias"):
            found[name] = torch.cat((tensor.chunk(3)[0], tensor.chunk(3)[2]))
        elif name.endswith("memory_proj.bias"):
            found[name] = tensor.chunk(2)[1]
    return found


def log(run: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, toy_config: Path) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "run"
    done = stacl("train", toy_config, "--out", folder, *options())
    assert done.returncode == 0, done.stderr
    return folder


def assert_same_training(one: Path, other: Path) -> None:
    ours, theirs = weights(one), weights(other)
    assert ours.keys() == theirs.keys()
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], atol=2e-4, rtol=1e-3, msg=f"{name} differs")
    for here, there in zip(log(one), log(other), strict=True):
        assert here["step"] == there["step"]
        assert here["train_loss"] == pytest.approx(there["train_loss"], abs=1e-4)
        assert here["loss"] == pytest.approx(there["loss"], abs=1e-4)


@pytest.mark.slow
def test_two_processes_reach_the_weights_of_one(tmp_path: Path, toy_config: Path, alone: Path) -> None:
    done = torchrun("train", toy_config, "--out", tmp_path / "run", *options())
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "run")  # printed once
    assert done.stderr.count("2 processes") == 1
    assert done.stderr.count("step 6, epoch") == 1  # validated once
    assert_same_training(tmp_path / "run", alone)
    # The comparison can fail: another seed gives other weights.
    other = stacl("train", toy_config, "--out", tmp_path / "other", *options(train__seed=2))
    assert other.returncode == 0, other.stderr
    with pytest.raises(AssertionError):
        assert_same_training(tmp_path / "other", alone)


@pytest.mark.slow
def test_a_killed_process_ends_the_training_which_resumes(tmp_path: Path, toy_config: Path) -> None:
    """Rank 1 is killed: rank 0 reports it, and the resumed run reaches the weights of an undisturbed one."""
    run = tmp_path / "run"
    first, second = pair("train", toy_config, "--out", run, *options(train__steps=4000, train__validate_every=4000))
    try:
        wait_for(lambda: any((run / "checkpoints").glob("[0-9]*")), first, second)
        second.kill()
        _, error = first.communicate(timeout=60)
    finally:
        end(first, second)
    assert first.returncode == 2, error
    message = error.strip().splitlines()[-1]
    assert message.startswith("stacl train: another process of this training has ended")
    assert "--resume" in message
    assert "Traceback" not in error

    reached = int(sorted((run / "checkpoints").glob("[0-9]*"))[-1].name)
    rest = options(train__steps=reached + 3, train__validate_every=reached + 3)
    done = torchrun("train", "--resume", "--out", run, *rest)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"resumed {run} at step {reached}") == 1
    alone = stacl("train", toy_config, "--out", tmp_path / "alone", *rest)
    assert alone.returncode == 0, alone.stderr
    assert_same_training(run, tmp_path / "alone")


@pytest.mark.slow
def test_minimum_risk_training_in_two_processes(tmp_path: Path, toy_config: Path) -> None:
    """Each process samples for its own sentences; the logged reward is the mean over all."""
    settings = options(train__steps=4, train__validate_every=4, train__budget=200, train__samples=2)
    done = torchrun("train", toy_config, "--out", tmp_path / "run", *settings)
    assert done.returncode == 0, done.stderr
    alone = stacl("train", toy_config, "--out", tmp_path / "alone", *settings)
    assert alone.returncode == 0, alone.stderr
    (line,), (expected,) = log(tmp_path / "run"), log(tmp_path / "alone")
    assert line["nearness"] == pytest.approx(expected["nearness"], rel=0.25)  # other samples of the same sentences


@pytest.mark.slow
def test_a_process_that_does_not_answer_causes_a_time_out(tmp_path: Path, toy_config: Path) -> None:
    """The process is stopped, not killed, so its connection stays open."""
    run = tmp_path / "run"
    long = options(train__steps=100_000, train__validate_every=100_000)
    first, second = pair("train", toy_config, "--out", run, *long, STACL_TIMEOUT="20.5")
    try:
        wait_for(lambda: any((run / "checkpoints").glob("[0-9]*")), first, second)
        second.send_signal(signal.SIGSTOP)
        _, error = first.communicate(timeout=90)
    finally:
        second.send_signal(signal.SIGCONT)
        end(first, second)
    assert first.returncode == 2, error
    assert "does not answer" in error


@pytest.mark.slow
def test_a_mistake_ends_all_processes(tmp_path: Path, toy_config: Path) -> None:
    done = torchrun("train", toy_config, "--out", tmp_path / "run", "--set", 'data.corpora=["coppy"]')
    assert done.returncode != 0
    assert "did you mean copy?" in done.stderr


def wait_for(condition: Callable[[], object], *processes: subprocess.Popen[str], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        for process in processes:
            assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "the condition never held"
        time.sleep(0.02)


def end(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_shards_cover_every_batch_once(size: int) -> None:
    lengths = np.random.default_rng(0).integers(1, 30, (500, 2)).astype(np.uint16)
    for batch in epoch_batches(lengths, 300, 1, 0):
        shards = [World(rank, size).shard(batch) for rank in range(size)]
        assert sorted(np.concatenate(shards).tolist()) == sorted(batch.tolist())
        assert max(map(len, shards)) - min(map(len, shards)) <= 1


def test_a_single_process_changes_nothing() -> None:
    model = torch.nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    assert model.weight.grad is not None
    before = model.weight.grad.clone()
    alone = World()
    alone.sum_gradients(model)
    assert torch.equal(model.weight.grad, before)
    assert alone.sum(1.5, 2) == [1.5, 2]
    assert alone.broadcast("same") == "same"
    assert alone.first_then_all(lambda: 3) == 3


def test_every_process_has_its_own_seed() -> None:
    seeds = [World(rank, 3).seed("1 7") for rank in range(3)]
    assert seeds[0] == "1 7"  # the first process has the seed of a single process
    assert len(set(seeds)) == 3
