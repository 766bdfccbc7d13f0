"""Label-smoothed cross-entropy over the target positions that are real."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from stacl.batches import Batch
from stacl.models.base import Model


@dataclass(frozen=True)
class Loss:
    """Sums over positions, so that batches and processes can be added up and divided once."""

    smoothed: Tensor  # what is minimised
    surprise: Tensor  # -log p of the right pieces, in nats: what is reported
    positions: int


def loss_of(model: Model, batch: Batch, g: Tensor, smoothing: float) -> Loss:
    """The vocabulary is computed for real positions alone: padding costs nothing here."""
    logits = model.project(model.hidden(batch, g)[batch.real]).float()  # [N, V]
    right = batch.target_out[batch.real]
    logs = F.log_softmax(logits, dim=-1)
    surprise = F.nll_loss(logs, right, reduction="sum")
    # (1 - s) of the mass on the right piece, s spread evenly over all pieces
    smoothed = (1 - smoothing) * surprise - smoothing * logs.mean(dim=-1).sum()
    return Loss(smoothed, surprise.detach(), len(right))
