"""Long computations in small steps: generators that yield nothing, now and then, and return what they found.

Whoever serves many turns to others in between; whoever has only this to do calls `run`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Found = TypeVar("Found")


def run(steps: Generator[None, None, Found]) -> Found:
    """All steps that are left; what they find."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
