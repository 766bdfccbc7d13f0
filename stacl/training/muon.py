"""Muon beside Adam: the matrices between the layers move by orthogonalised momentum, everything else by Adam.

A step of Muon (Jordan et al. 2024) moves a matrix equally far in each of its directions, where Adam's is led by a few;
a short training gets further with it. Its size is matched to Adam's (Liu et al. 2025), so one rate serves both.
"""

from __future__ import annotations

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
        for parameter in own["params"]:
            if parameter.grad is not None:
                self._move(parameter, parameter.grad, own["lr"], own["weight_decay"])

    def _move(self, parameter: Tensor, gradient: Tensor, rate: float, decay: float) -> None:
        state = self.state[parameter]
        if not state:
            # AdamW, when it is loaded, wants to see a step count in every state.
            state.update(step=torch.zeros(()), momentum=torch.zeros_like(parameter))
        state["step"] += 1
        state["momentum"].lerp_(gradient, 1 - MOMENTUM)
        change = orthogonal(gradient.lerp(state["momentum"], MOMENTUM))  # Nesterov's look ahead
        parameter.mul_(1 - rate * decay)
        parameter.add_(change, alpha=-rate * MATCH * max(parameter.shape) ** 0.5)


def orthogonal(matrix: Tensor) -> Tensor:
    """About the nearest orthogonal matrix: every round brings the singular values nearer to 1."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.T if tall else matrix).contiguous()
    x = x / (x.norm() + 1e-7)
    x = _by_its_square(x) if x.shape[1] > x.shape[0] else _by_itself(x)
    return x.T if tall else x


def _by_itself(x: Tensor) -> Tensor:
    """x <- (a + b xx' + c (xx')^2) x"""
    for _ in range(ROUNDS):
        x = _factor(x @ x.T) @ x
    return x


def _by_its_square(x: Tensor) -> Tensor:
    """The same, but the rounds are done on xx', the smaller, and x is multiplied once, by what they come to."""
    square = x @ x.T
    product = factor = _factor(square)
    for _ in range(ROUNDS - 1):
        square = factor @ square @ factor
        factor = _factor(square)
        product = factor @ product
    return product @ x


def _factor(square: Tensor) -> Tensor:
    """a + b xx' + c (xx')^2"""
    a, b, c = COEFFICIENTS
    factor = torch.addmm(square, square, square, beta=b, alpha=c)
    factor.diagonal().add_(a)
    return factor
