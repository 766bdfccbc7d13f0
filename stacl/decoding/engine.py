"""How the search and the live session talk to a model: plain arrays in, plain arrays out.

An engine is the `start / read / write` half of the contract of models/base.py over numpy, so that what decodes needs
no torch: the trained model itself is one engine (below), an exported one that runs without torch is another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from stacl.models.base import Model


class Engine(Protocol):
    """B sentences at a time. States are values: `read` and `write` return a new one and leave the old as it was."""

    def start(self, size: int = 1) -> Any:
        """The state of `size` sentences of which nothing was read or written."""

    def read(self, state: Any, pieces: np.ndarray) -> Any:
        """Take in more source: [B, n] pieces."""

    def write(self, state: Any, previous: np.ndarray, visible: np.ndarray | None = None) -> tuple[Any, np.ndarray]:
        """The logits [B, V] of the next target piece after `previous` [B]; the caller may change them in place.

        `visible` [B] limits each row to its first source pieces and never decreases.
        """

    def select(self, state: Any, rows: np.ndarray) -> Any:
        """The state of these rows, in this order; a row may be taken more than once."""


class TorchEngine:
    """A model as it was trained."""

    def __init__(self, model: Model) -> None:
        import torch

        self._torch = torch
        self.model = model.eval()
        self.device = next(model.parameters()).device

    def start(self, size: int = 1) -> Any:
        return self.model.start(size)

    def read(self, state: Any, pieces: np.ndarray) -> Any:
        with self._torch.inference_mode():
            return self.model.read(state, self._tensor(pieces))

    def write(self, state: Any, previous: np.ndarray, visible: np.ndarray | None = None) -> tuple[Any, np.ndarray]:
        with self._torch.inference_mode():
            seen = None if visible is None else self._tensor(visible)
            state, logits = self.model.write(state, self._tensor(previous), seen)
            return state, logits.float().cpu().numpy()

    def select(self, state: Any, rows: np.ndarray) -> Any:
        with self._torch.inference_mode():
            return state.select(self._tensor(rows))

    def _tensor(self, array: np.ndarray) -> Any:
        return self._torch.from_numpy(np.asarray(array, dtype=np.int64)).to(self.device)
