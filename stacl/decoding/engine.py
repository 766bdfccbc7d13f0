"""The interface between decoding and a model, over numpy arrays.

An engine has the `start`, `read` and `write` methods of models/base.py over numpy, so that decoding does not need
torch. The files of `engines/` implement it.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np

State = TypeVar("State")


class Engine(Protocol[State]):
    """Runs a model on B sentences at a time. States are immutable: `read` and `write` return a new one."""

    def start(self, size: int = 1) -> State:
        """Return the state of `size` sentences before anything is read or written."""

    def read(self, state: State, pieces: np.ndarray) -> State:
        """Read more source: [B, n] pieces."""

    def write(self, state: State, previous: np.ndarray, visible: np.ndarray | None = None) -> tuple[State, np.ndarray]:
        """Return the logits [B, V] of the target piece after `previous` [B]. The caller may change them in place.

        `visible` [B] limits each row to its first source pieces and never decreases.
        """

    def select(self, state: State, rows: np.ndarray) -> State:
        """Return the state of these rows, in this order. A row may occur more than once."""
