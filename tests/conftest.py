"""What several test files share: small runs, trained once a session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.samples import CORPORA

# A busy machine is no finding of a property test.
settings.register_profile("stacl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("stacl")

# Before torch is imported: tests use tiny products, where a second thread only spins.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without STACL_DATA, tests of whole corpora are not part of the suite; each has a twin on the samples."""
    if CORPORA is None:
        whole = [item for item in items if item.get_closest_marker("corpora")]
        config.hook.pytest_deselected(items=whole)
        items[:] = [item for item in items if not item.get_closest_marker("corpora")]


# Small enough that most of a run's time goes into starting Python and torch.
QUICK = {
    "text.vocabulary": 330,
    "model.width": 32,
    "model.inner": 64,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "train.threads": 1,
}


def stacl(*arguments: object, timeout: float = 560, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command line, in a process of its own."""
    command = [sys.executable, "-m", "stacl", *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, **options)


def changes(**more: object) -> list[str]:
    """`--set` options from names with a double underscore for the dot: train__steps=60."""
    settings = QUICK | {name.replace("__", "."): value for name, value in more.items()}
    return [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]


@pytest.fixture(scope="session")
def toy_config() -> Path:
    return ROOT / "configs" / "toy.toml"


@pytest.fixture(scope="session")
def copy_run(tmp_path_factory: pytest.TempPathFactory, toy_config: Path) -> Path:
    """The toy task, learned: copy, one word behind."""
    folder = tmp_path_factory.mktemp("runs") / "copy"
    done = stacl("train", toy_config, "--out", folder, "--set", "train.threads=1", "--set", "train.steps=200")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="session")
def babbler(copy_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with random weights: unlike one that has learned to copy, it has much to say when the source has ended."""
    import torch

    from stacl import config
    from stacl.runs import checkpoint
    from stacl.runs.folder import RunFolder, build_model

    folder = tmp_path_factory.mktemp("babbler")
    shutil.copytree(copy_run / "vocabulary", folder / "vocabulary")
    settings = config.load(copy_run / "config.toml", ["model.width=32", "model.heads=2"])
    RunFolder(folder).save_settings(settings)
    torch.manual_seed(3)
    model = build_model(settings.model, *RunFolder(folder).vocabularies(), settings.text.shared)
    checkpoint.save_model(folder / "model.safetensors", model.state_dict(), {})
    return folder


def complaint(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What stacl says when it refuses: one line on stderr, nothing on stdout."""
    from stacl.__main__ import main

    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    return err.splitlines()[-1]


@pytest.fixture
def quick(toy_config: Path) -> tuple[Path, *tuple[str, ...]]:
    return toy_config, *changes(data__corpora='["copy:pairs=50,held_out=5"]', train__steps=4, train__validate_every=2)


@pytest.fixture
def trained(tmp_path: Path, quick: tuple[Path, *tuple[str, ...]]) -> Path:
    from stacl.__main__ import main

    folder = tmp_path / "run"
    assert main(["train", *map(str, quick), "--out", str(folder), "--set", "train.save_every=2"]) == 0
    return folder
