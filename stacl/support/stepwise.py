"""Long computations in small steps: generators that yield None between steps and return a result.

A server runs the steps of several computations in turn; other callers use `run`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")


def run(steps: Generator[None, None, Result]) -> Result:
    """Run all remaining steps and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
