"""The engine that runs a trained model in torch, on any device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from stacl.models.base import Model


class TorchEngine:
    """Runs a model as it was trained. The type of its states depends on the kind of model."""

    def __init__(self, model: Model) -> None:
        self.model = model.eval()
        self.device = next(model.parameters()).device

    def start(self, size: int = 1) -> Any:
        return self.model.start(size)

    def read(self, state: Any, pieces: np.ndarray) -> Any:
        with torch.inference_mode():
            return self.model.read(state, self._tensor(pieces))

    def write(self, state: Any, previous: np.ndarray, visible: np.ndarray | None = None) -> tuple[Any, np.ndarray]:
        with torch.inference_mode():
            limit = None if visible is None else self._tensor(visible)
            state, logits = self.model.write(state, self._tensor(previous), limit)
            return state, logits.float().cpu().numpy()

    def select(self, state: Any, rows: np.ndarray) -> Any:
        with torch.inference_mode():
            return state.select(self._tensor(rows))

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.asarray(array, dtype=np.int64)).to(self.device)
