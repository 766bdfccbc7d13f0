"""Muon: what a step is, what it leaves alone, and that it goes on where it was."""

from __future__ import annotations

import pytest
import torch

from stacl.config import TrainSettings
from stacl.models.transformer import Transformer
from stacl.runs import checkpoint
from stacl.training.muon import MATCH, Muon, _by_its_square, _by_itself, orthogonal
from stacl.training.optim import build

SIZES = {"width": 16, "inner": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
SETTINGS = TrainSettings(optimizer="muon", rate=1e-2, decay=0.0)


def model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(source_size=50, target_size=50, shared=True, encoder="causal", **SIZES)


def give_gradients(net: torch.nn.Module, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    for parameter in net.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=draw)


@pytest.mark.parametrize("shape", [(16, 16), (16, 48), (48, 16)])
def test_every_direction_gets_about_the_same_length(shape):
    draw = torch.Generator().manual_seed(1)
    found = orthogonal(torch.randn(shape, generator=draw))
    lengths = torch.linalg.svdvals(found)
    assert found.shape == shape
    # The coefficients trade exactness for speed: lengths between 0.7 and 1.2, but for the very smallest.
    assert lengths.max() < 1.25
    assert lengths.median() > 0.65


def test_the_directions_are_those_of_the_matrix():
    draw = torch.Generator().manual_seed(2)
    left, right = (torch.linalg.qr(torch.randn(8, 8, generator=draw))[0] for _ in range(2))
    found = orthogonal(left @ torch.diag(torch.linspace(1, 3, 8)) @ right)
    between = left.T @ found @ right.T
    assert (between - torch.diag(between.diagonal())).abs().max() < 1e-4
    assert between.diagonal().min() > 0.6


def test_the_short_way_comes_to_the_same():
    """On the square of a matrix instead of on itself, also where some directions are a thousand times weaker."""
    draw = torch.Generator().manual_seed(5)
    for strength in (torch.ones(24), torch.logspace(0, -3, 24)):
        wide = strength[:, None] * torch.randn(24, 72, generator=draw)
        wide /= wide.norm()
        assert _by_its_square(wide) == pytest.approx(_by_itself(wide), abs=1e-4)


@pytest.mark.parametrize("shape", [(16, 16), (16, 48), (48, 16)])
def test_a_step_is_that_of_torch_but_for_its_rounding(shape):
    """torch.optim.Muon orthogonalises in bfloat16, ours in float32: one per cent apart."""
    draw = torch.Generator().manual_seed(7)
    ours, theirs = (torch.nn.Parameter(torch.ones(shape)) for _ in range(2))
    adam = {"params": [torch.nn.Parameter(torch.zeros(2))]}
    own = Muon([ours], [adam], 0.1, lr=1e-2)
    other = torch.optim.Muon([theirs], lr=1e-2, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    for _ in range(5):
        ours.grad = torch.randn(shape, generator=draw)
        theirs.grad = ours.grad.clone()
        own.step()
        other.step()
    moved = ours.detach() - 1
    assert (ours - theirs).norm() < 0.03 * moved.norm()


def test_layers_move_by_muon_and_the_rest_by_adam():
    net = model()
    optimizer = build(net, SETTINGS)
    assert isinstance(optimizer, Muon)
    before = {name: parameter.detach().clone() for name, parameter in net.named_parameters()}
    give_gradients(net, 3)
    optimizer.step()
    for name, parameter in net.named_parameters():
        moved = parameter.detach() - before[name]
        if parameter.dim() > 1 and "embedding" not in name:
            longest = torch.linalg.svdvals(moved).max()
            assert longest == pytest.approx(1e-2 * MATCH * max(moved.shape) ** 0.5, rel=0.3), name
        else:  # Adam's first step is the rate, in the direction of each sign
            assert moved.abs().max() == pytest.approx(1e-2, rel=1e-3), name


def test_every_parameter_is_in_one_group():
    net = model()
    grouped = [id(p) for group in build(net, SETTINGS).param_groups for p in group["params"]]
    assert sorted(grouped) == sorted(id(p) for p in net.parameters())


def test_saved_and_loaded_it_goes_on_the_same():
    def train(net, optimizer, steps):
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


def test_a_gradient_that_overflowed_moves_nothing():
    net = model()
    optimizer = build(net, SETTINGS)
    before = [parameter.detach().clone() for parameter in net.parameters()]
    give_gradients(net, 4)
    optimizer.found_inf = torch.ones(())  # what the scaler of mixed precision leaves
    optimizer.step()
    assert all(parameter.equal(was) for parameter, was in zip(net.parameters(), before, strict=True))
