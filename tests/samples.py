"""The folder of real text beside the repository, for tests that need no torch."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_data(name: str = "") -> Path:
    """A file or folder of ../shared/data. Absent: the test is skipped, but fails in CI."""
    path = DATA / name
    if not path.exists():
        message = f"../shared/data/{name} is not beside the repository"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return path


def lines(name: str, count: int, step: int = 1) -> list[str]:
    with shared_data(name).open(encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n") for number, line in enumerate(file) if number % step == 0][:count]
