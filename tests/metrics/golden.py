"""The shared golden values: found beside the repository, and under CI=true they must be there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[3] / "shared"


def shared(*parts: str) -> Path:
    """A path under the shared folder. Absent: the test is skipped, but fails under CI=true."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        message = f"shared/{'/'.join(parts)} is not beside the repository"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(message)
        pytest.skip(message)
    return path
