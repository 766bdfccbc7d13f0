"""Label-smoothed cross-entropy over the real target positions, with a weight per sentence.

The logits, N positions x V pieces, are the largest tensor in training. `cross_entropy(project(hidden), targets)` would
write and read them several times. Here a few hundred positions at a time are projected, and their gradient is computed
while the logits are still in the CPU cache. No [N, V] tensor is allocated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor

from stacl.models.base import Model
from stacl.models.batch import Batch

CHUNK = 2**21  # logits per chunk: 8 MB


@dataclass(frozen=True)
class Loss:
    """Sums over positions, so that the losses of batches and processes can be added."""

    smoothed: Tensor  # the training loss
    nll: Tensor  # negative log-likelihood of the targets in nats, for reports
    positions: int


@runtime_checkable
class LinearVocabulary(Protocol):
    """A model whose `project` is a single linear layer, as the fast path requires."""

    def vocabulary(self) -> tuple[Tensor, Tensor]:
        """The weight [V, D] and the bias [V] of `project`."""


def loss_of(model: Model, batch: Batch, g: Tensor, smoothing: float, weights: Tensor | None = None) -> Loss:
    """The loss of a batch. Padding is not projected.

    `weights` [B] scale the training loss of each sentence. A weight below 0 makes a sentence less likely.
    """
    hidden = model.hidden(batch, g)[batch.real]  # [N, D]
    targets = batch.target_out[batch.real]
    by_sentence = hidden.new_ones(batch.size) if weights is None else weights
    by_position = by_sentence[:, None].expand_as(batch.real)[batch.real]  # [N]
    # A GPU has memory for the logits and fast kernels; mixed precision needs autocast.
    exact = hidden.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    if isinstance(model, LinearVocabulary) and exact:
        smoothed, nll = _LinearLoss.apply(hidden, *model.vocabulary(), targets, by_position, smoothing)  # type: ignore[no-untyped-call]
    else:
        smoothed, nll = plain(model.project(hidden).float(), targets, by_position, smoothing)
    return Loss(smoothed, nll.detach(), len(targets))


def plain(logits: Tensor, targets: Tensor, weights: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The definition: the training loss and the negative log-likelihood from all logits [N, V]."""
    logs = F.log_softmax(logits, dim=-1)
    nll = F.nll_loss(logs, targets, reduction="none")
    # (1 - s) of the mass on the target piece, s spread evenly over all pieces
    return (weights * ((1 - smoothing) * nll - smoothing * logs.mean(dim=-1))).sum(), nll.sum()


class _LinearLoss(torch.autograd.Function):
    """`plain(linear(hidden))`, with the gradients computed in the forward pass, chunk by chunk.

    d loss / d logit = p - (1 - s) [target] - s / V. The last term is the same for all logits, so it is added to the
    gradients as an outer product of two vectors.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, weights: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        pieces = len(weight)
        needs_gradient = any(ctx.needs_input_grad[:3])
        total = weight.sum(dim=0)  # [D] the logits of a row h sum to h @ total + sum(bias)
        by_hidden = torch.empty_like(hidden) if needs_gradient else None
        by_weight, by_bias = (torch.zeros_like(weight), torch.zeros_like(bias)) if needs_gradient else (None, None)
        nll = hidden.new_zeros((), dtype=torch.float64)
        smoothed = hidden.new_zeros((), dtype=torch.float64)
        rows = max(1, CHUNK // pieces)
        for start in range(0, len(hidden), rows):
            chunk, chunk_targets = hidden[start : start + rows], targets[start : start + rows, None]
            chunk_weights = weights[start : start + rows]
            logits = torch.addmm(bias, chunk, weight.t())  # [n, V]
            target_logits = logits.gather(1, chunk_targets)
            highest = logits.amax(dim=1, keepdim=True)
            p = logits.sub_(highest).exp_()  # in place: unnormalised probabilities
            sums = p.sum(dim=1, keepdim=True)
            chunk_nll = (sums.log() + highest - target_logits)[:, 0].double()  # [n]
            nll += chunk_nll.sum()
            # -mean(log p) of a position is its nll plus the target logit minus the mean logit
            mean = (chunk @ total + bias.sum()) / pieces
            smoothed += (chunk_weights * (chunk_nll + smoothing * (target_logits[:, 0] - mean))).sum()
            if by_hidden is None or by_weight is None or by_bias is None:
                continue
            p.div_(sums)
            p.scatter_add_(1, chunk_targets, p.new_full(chunk_targets.shape, smoothing - 1))
            torch.mm(p, weight, out=by_hidden[start : start + rows])
            by_weight.addmm_(p.t(), chunk * chunk_weights[:, None])
            by_bias += chunk_weights @ p
        if by_hidden is not None and by_weight is not None and by_bias is not None:
            even = smoothing / pieces
            by_hidden.sub_(even * total).mul_(weights[:, None])
            by_weight -= even * (weights @ hidden)
            by_bias -= even * weights.sum()
            ctx.save_for_backward(by_hidden, by_weight, by_bias)
        reported = nll.float()
        ctx.mark_non_differentiable(reported)
        return smoothed.float(), reported

    @staticmethod
    def backward(ctx: Any, by_smoothed: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        by_hidden, by_weight, by_bias = ctx.saved_tensors
        return by_hidden * by_smoothed, by_weight * by_smoothed, by_bias * by_smoothed, None, None, None
