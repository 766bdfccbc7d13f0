"""Several threads give the same gradient, independent of timing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from stacl import config
from stacl.models.batch import epoch_batches
from stacl.models.dropout import keep_mask, seeded
from stacl.runs.folder import RunFolder
from stacl.training.prepare import Prepared, prepare
from stacl.training.thread_pool import GradientThreads
from stacl.training.trainer import Trainer
from tests.conftest import QUICK

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, toy_config: Path) -> Prepared:
    return prepare(settings(toy_config), RunFolder(tmp_path_factory.mktemp("threads")), lambda text: None)


def settings(toy_config: Path, *changes: str) -> config.Config:
    return config.load(toy_config, [f"{name}={value}" for name, value in QUICK.items()] + list(changes))


def trained(
    toy_config: Path, prepared: Prepared, folder: Path, threads: int, dropout: float, steps: int = 6
) -> Trainer:
    """A trainer after some updates, whose results are in `.figures`."""
    changes = (f"train.threads={threads}", f"model.dropout={dropout}", "train.warmup=1")
    trainer = Trainer(settings(toy_config, *changes), RunFolder(folder), prepared)
    trainer.figures = []  # type: ignore[attr-defined]
    for numbers in epoch_batches(prepared.train.lengths, 2048, 1, 0)[:steps]:
        trainer.position.step += 1
        figures = trainer.update(trainer.batches(prepared.train, numbers))
        trainer.figures.append(figures)  # type: ignore[attr-defined]
    return trainer


def weights(trainer: Trainer) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in trainer.model.parameters()])


def test_two_threads_reach_the_weights_of_one(toy_config: Path, prepared: Prepared, tmp_path: Path) -> None:
    one, two = (trained(toy_config, prepared, tmp_path, threads, dropout=0.0) for threads in (1, 2))
    assert (one.threads.count, two.threads.count) == (1, 2)
    # Loss, positions and gradient norm. Adam makes full steps from gradients that are only rounding errors, so single
    # weights may differ; their mean difference is small.
    for alone, shared in zip(one.figures, two.figures, strict=True):  # type: ignore[attr-defined]
        assert vars(alone) == pytest.approx(vars(shared), rel=1e-5)
    assert (weights(one) - weights(two)).abs().mean() < 1e-6


def test_with_dropout_the_same_run_gives_the_same_bits(toy_config: Path, prepared: Prepared, tmp_path: Path) -> None:
    first, second = (trained(toy_config, prepared, tmp_path, threads=2, dropout=0.3) for _ in range(2))
    assert torch.equal(weights(first), weights(second))


def test_results_come_in_the_order_of_the_jobs() -> None:
    def work(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    assert list(GradientThreads(2, 4096, CPU).map(work, [0.05, 0.0, 0.02])) == [0.05, 0.0, 0.02]


@pytest.mark.parametrize(("threads", "budget", "count"), [(1, 4096, 1), (2, 4096, 2), (8, 4096, 4), (4, 1500, 1)])
def test_the_number_of_threads(threads: int, budget: int, count: int) -> None:
    assert GradientThreads(threads, budget, CPU).count == count


def test_threads_draw_dropout_independently() -> None:
    def draw(seed: int) -> torch.Tensor:
        with seeded(seed):
            masks = []
            for _ in range(20):
                masks.append(keep_mask((50,), 0.5))
                time.sleep(0.001)
            return torch.stack(masks)

    together = list(GradientThreads(2, 4096, CPU).map(draw, [1, 2]))
    assert torch.equal(together[0], draw(1))
    assert torch.equal(together[1], draw(2))
    assert not torch.equal(together[0], together[1])
