"""Muon beside Adam: the matrices between the layers move by orthogonalised momentum, everything else by Adam.

A step of Muon (Jordan et al. 2024) moves a matrix equally far in each of its directions, where Adam's is led by a few;
a short training gets further with it. Its size is matched to Adam's (Liu et al. 2025), so one rate serves both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the Newton-Schulz iteration, tuned by its authors for speed
ROUNDS = 5
MOMENTUM = 0.95
MATCH = 0.2  # the root mean square of an update of Adam's, which Muon's are scaled to


class Muon(torch.optim.AdamW):
    """AdamW over the groups `others`, Muon over `matrices`."""

    def __init__(self, matrices: Sequence[Tensor], others: list[dict[str, Any]], decay: float, **adam: Any) -> None:
        super().__init__(others, **adam)
        self.add_param_group({"params": list(matrices), "weight_decay": decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        *others, own = self.param_groups
        self.param_groups = others
        try:
            super().step(closure)
        finally:
            self.param_groups = [*others, own]
        if (overflow := getattr(self, "found_inf", None)) is not None and overflow.item():
            return  # set by the scaler of mixed precision: the gradient is to be left alone
        by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
        for parameter in own["params"]:
            if parameter.grad is not None:
                by_shape[parameter.shape].append(parameter)
        for parameters in by_shape.values():  # equal shapes in one product: many small ones would be slow
            self._move(parameters, own["lr"], own["weight_decay"])

    def _move(self, parameters: list[Tensor], rate: float, decay: float) -> None:
        wanted = []
        for parameter in parameters:
            state = self.state[parameter]
            if not state:
                # AdamW, when it is loaded, wants to see a step count in every state.
                state.update(step=torch.zeros(()), momentum=torch.zeros_like(parameter))
            state["step"] += 1
            gradient = parameter.grad
            assert gradient is not None
            state["momentum"].lerp_(gradient, 1 - MOMENTUM)
            wanted.append(gradient.lerp(state["momentum"], MOMENTUM))  # Nesterov's look ahead
        for parameter, change in zip(parameters, orthogonal(torch.stack(wanted)), strict=True):
            parameter.mul_(1 - rate * decay)
            parameter.add_(change, alpha=-rate * MATCH * max(parameter.shape) ** 0.5)


def orthogonal(matrices: Tensor) -> Tensor:
    """About the nearest orthogonal matrix of each: [N, rows, columns]."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(ROUNDS):
        square = x @ x.mT
        x = a * x + torch.baddbmm(square, square, square, beta=b, alpha=c) @ x
    return x.mT if tall else x
