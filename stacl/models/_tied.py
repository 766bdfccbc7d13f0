"""The common part of the models that share the target embedding with the output layer (Press and Wolf 2017)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from stacl.models.base import Model


class TiedModel(Model):
    """Embeddings of both languages. The target embedding is also the output layer."""

    def __init__(self, source_size: int, target_size: int, width: int, shared: bool) -> None:
        super().__init__()
        self.width = width
        self.source_embedding = nn.Embedding(source_size, width)
        self.target_embedding = self.source_embedding if shared else nn.Embedding(target_size, width)
        self.bias = nn.Parameter(torch.zeros(target_size))

    def project(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, *self.vocabulary())

    def vocabulary(self) -> tuple[Tensor, Tensor]:
        """Weight [V, D] and bias [V] of `project`, for the loss."""
        return self.target_embedding.weight, self.bias

    def initialise(self) -> None:
        """Draw the initial weights. Called when all layers exist."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.width**-0.5)
