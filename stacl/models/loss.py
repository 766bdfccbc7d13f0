"""Label-smoothed cross-entropy over the target positions that are real, each sentence with its weight.

The vocabulary is the widest thing in training: N positions x V pieces are written, read and differentiated
several times if one just writes `cross_entropy(project(hidden), right)`. Here a few hundred positions at a
time are projected, and their gradient is computed at once, while their logits are still in the cache: no [N,
V] tensor ever exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor

from stacl.models.base import Model
from stacl.models.batch import Batch

CHUNK = 2**21  # logits at a time: 8 MB


@dataclass(frozen=True)
class Loss:
    """Sums over positions, so that batches and processes can be added up and divided once."""

    smoothed: Tensor  # what is minimised
    nll: Tensor  # -log p of the right pieces, in nats: what is reported
    positions: int


@runtime_checkable
class LinearVocabulary(Protocol):
    """A model whose `project` is one linear layer and says so, which the fast path needs."""

    def vocabulary(self) -> tuple[Tensor, Tensor]:
        """The weight [V, D] and the bias [V] of `project`."""


def loss_of(model: Model, batch: Batch, g: Tensor, smoothing: float, weights: Tensor | None = None) -> Loss:
    """The vocabulary is computed for real positions alone: padding costs nothing here.

    `weights` [B] say how much what is minimised counts for each sentence; below 0 it is to become less likely.
    """
    hidden = model.hidden(batch, g)[batch.real]  # [N, D]
    right = batch.target_out[batch.real]
    by_sentence = hidden.new_ones(batch.size) if weights is None else weights
    counts = by_sentence[:, None].expand_as(batch.real)[batch.real]  # [N]
    # A GPU has room for the logits, kernels of its own, and mixed precision.
    exact = hidden.device.type == "cpu" and not torch.is_autocast_enabled("cpu")
    if isinstance(model, LinearVocabulary) and exact:
        smoothed, nll = _LinearLoss.apply(hidden, *model.vocabulary(), right, counts, smoothing)  # type: ignore[no-untyped-call]
    else:
        smoothed, nll = plain(model.project(hidden).float(), right, counts, smoothing)
    return Loss(smoothed, nll.detach(), len(right))


def plain(logits: Tensor, right: Tensor, counts: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """What is minimised and what is reported, from all logits [N, V]: the definition."""
    logs = F.log_softmax(logits, dim=-1)
    nll = F.nll_loss(logs, right, reduction="none")
    # (1 - s) of the mass on the right piece, s spread evenly over all pieces
    return (counts * ((1 - smoothing) * nll - smoothing * logs.mean(dim=-1))).sum(), nll.sum()


class _LinearLoss(torch.autograd.Function):
    """`plain(linear(hidden))`, with the gradients computed in the forward pass, chunk by chunk.

    d loss / d logit = p - (1 - s) [right] - s / V. The last term is the same for all logits, so it is added
    to the gradients as a product of two vectors, instead of touching every logit once more.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, right: Tensor, counts: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        pieces = len(weight)
        wanted = any(ctx.needs_input_grad[:3])
        total = weight.sum(dim=0)  # [D] the sum of all logits of h is h total + sum(bias)
        by_hidden = torch.empty_like(hidden) if wanted else None
        by_weight, by_bias = (torch.zeros_like(weight), torch.zeros_like(bias)) if wanted else (None, None)
        nll = hidden.new_zeros((), dtype=torch.float64)
        smoothed = hidden.new_zeros((), dtype=torch.float64)
        rows = max(1, CHUNK // pieces)
        for start in range(0, len(hidden), rows):
            some, answers = hidden[start : start + rows], right[start : start + rows, None]
            count = counts[start : start + rows]
            logits = torch.addmm(bias, some, weight.t())  # [n, V]
            picked = logits.gather(1, answers)
            highest = logits.amax(dim=1, keepdim=True)
            share = logits.sub_(highest).exp_()  # in place: unnormalised probabilities
            sums = share.sum(dim=1, keepdim=True)
            own = (sums.log() + highest - picked)[:, 0].double()  # [n] the nll of each
            nll += own.sum()
            # -mean(log p) of a position is its nll, plus the right logit, less the mean logit
            mean = (some @ total + bias.sum()) / pieces
            smoothed += (count * (own + smoothing * (picked[:, 0] - mean))).sum()
            if by_hidden is None or by_weight is None or by_bias is None:
                continue
            share.div_(sums)
            share.scatter_add_(1, answers, share.new_full(answers.shape, smoothing - 1))
            torch.mm(share, weight, out=by_hidden[start : start + rows])
            by_weight.addmm_(share.t(), some * count[:, None])
            by_bias += count @ share
        if by_hidden is not None and by_weight is not None and by_bias is not None:
            even = smoothing / pieces
            by_hidden.sub_(even * total).mul_(counts[:, None])
            by_weight -= even * (counts @ hidden)
            by_bias -= even * counts.sum()
            ctx.save_for_backward(by_hidden, by_weight, by_bias)
        reported = nll.float()
        ctx.mark_non_differentiable(reported)
        return smoothed.float(), reported

    @staticmethod
    def backward(ctx: Any, by_smoothed: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        by_hidden, by_weight, by_bias = ctx.saved_tensors
        return by_hidden * by_smoothed, by_weight * by_smoothed, by_bias * by_smoothed, None, None, None
