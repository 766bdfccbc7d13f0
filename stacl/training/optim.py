"""The optimizer and its learning rate over the steps."""

from __future__ import annotations

import math
from typing import Any

import torch

from stacl.config import TrainSettings
from stacl.models.base import Model
from stacl.support.errors import UserError
from stacl.training.muon import Muon


def rate_at(step: int, settings: TrainSettings) -> float:
    """The learning rate of step 1, 2, ...: a linear warm-up to `rate`, then the chosen descent.

    `inverse-sqrt` falls with 1/sqrt(step); `cosine` and `linear` reach a hundredth of the rate at `steps`. Over the
    last `cooldown` updates any of them is brought down to a hundredth: a run held at a constant rate can so be
    ended whenever one likes, by resuming it with a new `steps`.
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


def build(model: Model, settings: TrainSettings) -> torch.optim.Optimizer:
    """Adam, with Muon for the layers if so chosen; weight decay touches matrices alone, never norms and biases."""
    adam: dict[str, Any] = {"lr": settings.rate, "betas": (settings.beta1, settings.beta2), "eps": 1e-9, "fused": True}
    named = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    vectors = {"params": [p for _, p in named if p.dim() <= 1], "weight_decay": 0.0}
    if settings.optimizer == "adam":
        matrices = {"params": [p for _, p in named if p.dim() > 1], "weight_decay": settings.decay}
        return torch.optim.AdamW([matrices, vectors], **adam)
    # A row of an embedding is a vector of its own: only the few that a batch uses have a gradient.
    layers = [p for name, p in named if p.dim() > 1 and "embedding" not in name]
    rows = [p for name, p in named if p.dim() > 1 and "embedding" in name]
    return Muon(layers, [{"params": rows, "weight_decay": settings.decay}, vectors], settings.decay, **adam)


def step(
    optimizer: torch.optim.Optimizer, model: Model, rate: float, clip: float, scaler: torch.amp.GradScaler
) -> float:
    """One update; returns the norm of the gradient before clipping."""
    if scaler.is_enabled():
        scaler.unscale_(optimizer)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip if clip > 0 else math.inf)
    if not (scaler.is_enabled() or math.isfinite(norm)):  # a scaler passes over such a step and tries a smaller scale
        raise UserError("the gradient is not finite; resume with a lower train.rate, or a longer train.warmup")
    for group in optimizer.param_groups:
        group["lr"] = rate
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    return float(norm)
