"""Attention masks from reading policies. True means visible.

B batch, S source pieces (with the end symbol), T target positions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch
from torch import Tensor

from stacl.models.batch import Batch
from stacl.policies.base import Policy


def reading(policy: Policy, batch: Batch, rng: random.Random) -> Tensor:
    """g [B, T] of every target position, in units, the end included. The policy is drawn for each sentence."""
    return scheduled([policy.draw(rng, length) for length in batch.source_lengths.tolist()], batch)


def scheduled(policies: Sequence[Policy], batch: Batch) -> Tensor:
    """The same for one drawn policy per sentence."""
    steps = int(batch.target_units.max())
    lengths = batch.source_lengths.tolist()
    rows = [policy.visible(length, steps) for policy, length in zip(policies, lengths, strict=True)]
    table = torch.tensor(rows, device=batch.target_units.device)  # [B, steps]
    return table.gather(1, batch.target_units - 1)


def visible_pieces(source_units: Tensor, g: Tensor) -> Tensor:
    """The number of source pieces in the first g units: [B, S], [B, T] -> [B, T]."""
    return torch.searchsorted(source_units, g, right=True)


def first(count: Tensor, size: int) -> Tensor:
    """[..., size] True for the first `count` positions."""
    return torch.arange(size, device=count.device) < count.unsqueeze(-1)


def causal(new: int, before: int = 0, device: torch.device | None = None) -> Tensor:
    """[new, before + new]: each new position sees all earlier ones and itself.

    The `is_causal` flag of torch's attention aligns to the top left, which is wrong for a cached step.
    """
    return torch.ones(new, before + new, dtype=torch.bool, device=device).tril(before)
