"""The optimizer and the schedule of its learning rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from stacl.config import TrainSettings
from stacl.models.base import Model
from stacl.support.errors import UserError


def rate_at(step: int, settings: TrainSettings) -> float:
    """The learning rate of step 1, 2, ...: linear warm-up to `rate`, then the chosen schedule.

    `inverse-sqrt` falls with 1/sqrt(step); `cosine` and `linear` reach 1 % of the rate at `steps`. Every schedule
    falls to 1 % over the last `cooldown` updates. A run with a constant rate can therefore be ended at any time: resume
    it with a new `steps`.
    """
    left = settings.steps - step
    cooling = 0.01 + 0.99 * left / settings.cooldown if 0 <= left < settings.cooldown else 1.0
    return _scheduled(step, settings) * cooling


def _scheduled(step: int, settings: TrainSettings) -> float:
    if step <= settings.warmup:
        return settings.rate * step / settings.warmup
    if settings.schedule == "inverse-sqrt":
        return settings.rate * math.sqrt(max(1, settings.warmup) / step)
    if settings.schedule == "constant":
        return settings.rate
    done = min(1.0, (step - settings.warmup) / max(1, settings.steps - settings.warmup))
    share = 0.5 * (1 + math.cos(math.pi * done)) if settings.schedule == "cosine" else 1 - done
    return settings.rate * (0.01 + 0.99 * share)


class Combined(torch.optim.Optimizer):
    """Several optimizers over different parameters, with one state and one list of parameter groups."""

    def __init__(self, parts: Sequence[torch.optim.Optimizer]) -> None:
        self.parts = parts
        super().__init__([group for part in parts for group in part.param_groups], {})
        self._share()

    def _share(self) -> None:
        """Let the parts use the state and the groups of the whole."""
        groups = iter(self.param_groups)
        for part in self.parts:
            part.param_groups = [next(groups) for _ in part.param_groups]
            part.state = self.state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._share()

    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        for part in self.parts:
            part.step()


def build(model: Model, settings: TrainSettings) -> torch.optim.Optimizer:
    """AdamW, or Muon for the layers and AdamW for the rest. Weight decay applies to matrices only."""
    adam: dict[str, Any] = {"lr": settings.rate, "betas": (settings.beta1, settings.beta2), "eps": 1e-9, "fused": True}
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    vectors = {"params": [p for _, p in named if p.dim() <= 1], "weight_decay": 0.0}
    if settings.optimizer == "adam":
        matrices = {"params": [p for _, p in named if p.dim() > 1], "weight_decay": settings.decay}
        return torch.optim.AdamW([matrices, vectors], **adam)
    # Embeddings stay with AdamW: a batch has gradients for few of their rows, and each row is a vector of its own.
    embeddings = [p for name, p in named if p.dim() > 1 and "embedding" in name]
    layers = [p for name, p in named if p.dim() > 1 and "embedding" not in name]
    rest = torch.optim.AdamW([{"params": embeddings, "weight_decay": settings.decay}, vectors], **adam)
    # match_rms_adamw scales a step of Muon to the size of AdamW's (Liu et al. 2025), so both use one learning rate.
    muon = torch.optim.Muon(layers, lr=settings.rate, weight_decay=settings.decay, adjust_lr_fn="match_rms_adamw")
    return Combined([rest, muon])


def step(
    optimizer: torch.optim.Optimizer, model: Model, rate: float, clip: float, scaler: torch.amp.GradScaler
) -> float:
    """Make one update. Returns the norm of the gradient before clipping."""
    if scaler.is_enabled():
        scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip if clip > 0 else math.inf)
    if not (scaler.is_enabled() or math.isfinite(norm)):  # a scaler skips the step and lowers its scale
        raise UserError("the gradient is not finite; resume with a lower train.rate, or a longer train.warmup")
    for group in optimizer.param_groups:
        group["lr"] = rate
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    return float(norm)
