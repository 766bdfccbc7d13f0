"""Muon: its step, the parameters that it leaves to Adam, and resuming."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import torch

from stacl.config import TrainSettings
from stacl.models.transformer import Transformer
from stacl.runs import checkpoint
from stacl.training.optim import Combined, build

SIZES: dict[str, Any] = {"width": 16, "inner": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
SETTINGS = TrainSettings(optimizer="muon", rate=1e-2, decay=0.0)


def model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(source_size=50, target_size=50, shared=True, encoder="causal", **SIZES)


def give_gradients(net: torch.nn.Module, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    for parameter in net.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=draw)


def test_layers_move_by_muon_and_the_rest_by_adam() -> None:
    net = model()
    optimizer = build(net, SETTINGS)
    assert isinstance(optimizer, Combined)
    before = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    give_gradients(net, 3)
    optimizer.step()
    for name, parameter in net.named_parameters():
        moved = parameter.detach() - before[name]
        if parameter.dim() > 1 and "embedding" not in name:
            longest = torch.linalg.svdvals(moved).max()
            assert longest == pytest.approx(1e-2 * 0.2 * max(moved.shape) ** 0.5, rel=0.3), name
        else:  # Adam's first step is the rate, in the direction of each sign
            assert moved.abs().max() == pytest.approx(1e-2, rel=1e-3), name


def test_every_parameter_is_in_one_group() -> None:
    net = model()
    grouped = [id(p) for group in build(net, SETTINGS).param_groups for p in group["params"]]
    assert sorted(grouped) == sorted(id(p) for p in net.parameters())


def test_a_loaded_state_continues_identically() -> None:
    def train(net: torch.nn.Module, optimizer: torch.optim.Optimizer, steps: Iterable[int]) -> None:
        for step in steps:
            give_gradients(net, step)
            optimizer.step()

    straight = model()
    train(straight, build(straight, SETTINGS), range(6))
    halted = model()
    optimizer = build(halted, SETTINGS)
    train(halted, optimizer, range(3))
    tensors = {name: value.clone() for name, value in checkpoint.optimizer_tensors(optimizer).items()}
    other = build(halted, SETTINGS)
    checkpoint.load_optimizer(other, tensors)
    train(halted, other, range(3, 6))
    for name, value in straight.state_dict().items():
        assert halted.state_dict()[name].equal(value), name


def test_an_overflowed_gradient_moves_nothing() -> None:
    net = model()
    optimizer = build(net, SETTINGS)
    before = [parameter.detach().clone() for parameter in net.parameters()]
    give_gradients(net, 4)
    gradient = next(net.parameters()).grad
    assert gradient is not None
    gradient.fill_(float("inf"))
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(torch.ones(()))  # the scaler is set up by its first use
    scaler.step(optimizer)
    scaler.update()
    assert all(now.equal(then) for now, then in zip(net.parameters(), before, strict=True))


def test_a_new_rate_reaches_both_after_loading() -> None:
    net = model()
    optimizer = build(net, SETTINGS)
    give_gradients(net, 5)
    optimizer.step()
    checkpoint.load_optimizer(optimizer, checkpoint.optimizer_tensors(optimizer))
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    before = [parameter.detach().clone() for parameter in net.parameters()]
    optimizer.step()
    assert all(now.equal(then) for now, then in zip(net.parameters(), before, strict=True))
