"""Real text for tests: the samples of tests/data, and whole corpora where STACL_DATA names their folder.

A test marked `corpora` needs whole corpora. It is collected only where the environment variable STACL_DATA is set.
"""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(__file__).resolve().parent / "data"
GOLDEN = DATA / "golden"
# A root for `stacl.corpora`, with a few hundred lines of each corpus whose licence allows it.
SAMPLE = DATA / "sample"
# The same for whole corpora. Read once, because some tests clear the variable.
CORPORA = Path(os.environ["STACL_DATA"]).resolve() if os.environ.get("STACL_DATA") else None


def corpora() -> Path:
    """The folder of whole corpora, for tests marked `corpora`."""
    assert CORPORA is not None, "STACL_DATA is not set; mark this test with pytest.mark.corpora"
    return CORPORA


def lines(name: str, count: int | None = None, step: int = 1, root: Path = SAMPLE) -> list[str]:
    """Every `step`-th line of a file below `root`, at most `count` lines."""
    with (root / name).open(encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n") for number, line in enumerate(file) if number % step == 0][:count]
