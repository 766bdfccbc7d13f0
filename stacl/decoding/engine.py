"""How a search talks to a model: plain arrays in, plain arrays out.

An engine is the `start`, `read` and `write` half of the contract of models/base.py over numpy, so that decoding needs
no torch. The files of `engines/` implement it.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np

State = TypeVar("State")


class Engine(Protocol[State]):
    """B sentences at a time. States are values: `read` and `write` return a new one and leave the old as it was."""

    def start(self, size: int = 1) -> State:
        """The state of `size` sentences of which nothing was read or written."""

    def read(self, state: State, pieces: np.ndarray) -> State:
        """Read more source: [B, n] pieces."""

    def write(self, state: State, previous: np.ndarray, visible: np.ndarray | None = None) -> tuple[State, np.ndarray]:
        """The logits [B, V] of the next target piece after `previous` [B]; the caller may change them in place.

        `visible` [B] limits each row to its first source pieces and never decreases.
        """

    def select(self, state: State, rows: np.ndarray) -> State:
        """The state of these rows, in this order; a row may be taken more than once."""
