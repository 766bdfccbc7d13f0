"""Masks from g(t), compared with a brute-force computation."""

from __future__ import annotations

import random

import pytest
import torch

from stacl.models.batch import NEVER
from stacl.models.masks import causal, first, reading, visible_pieces
from stacl.policies.base import policy
from tests.helpers import random_batch

POLICIES = ["full", "none", "wait-k:1", "wait-k:3", "wait-k:2,c=0.25", "wait-k:2,c=-1/4", "wait-k:99"]


@pytest.mark.parametrize("unit", ["word", "piece"])
@pytest.mark.parametrize("spec", POLICIES)
def test_exactly_the_pieces_of_the_read_units_are_visible(spec: str, unit: str) -> None:
    batch, chosen = random_batch(unit, seed=5), policy(spec, unit)
    g = reading(chosen, batch, random.Random(0))
    assert g.shape == batch.target_units.shape
    is_visible = first(visible_pieces(batch.source_units, g), batch.source.shape[1])  # [B, T, S]
    for row in range(batch.size):
        length = int(batch.source_lengths[row])
        for step, t in enumerate(batch.target_units[row].tolist()):
            read = chosen.visible(length, t)[t - 1]
            assert g[row, step] == read
            assert is_visible[row, step].tolist() == [unit <= read for unit in batch.source_units[row].tolist()]


@pytest.mark.parametrize("unit", ["word", "piece"])
def test_padding_is_never_visible_and_the_end_only_once_read(unit: str) -> None:
    batch = random_batch(unit, seed=6)
    for spec in POLICIES:
        g = reading(policy(spec, unit), batch, random.Random(0))
        is_visible = first(visible_pieces(batch.source_units, g), batch.source.shape[1])
        padding = batch.source_units == NEVER
        assert not (is_visible & padding[:, None]).any()
        ends = batch.source_units == batch.source_lengths[:, None] + 1
        sees_end = (is_visible & ends[:, None]).any(-1)
        assert sees_end.equal(g > batch.source_lengths[:, None])
        if spec == "full":
            assert sees_end.all()
        if spec == "none":
            assert not is_visible.any()


def test_a_family_is_drawn_for_each_sentence() -> None:
    batch = random_batch("word", sizes=((9, 9),) * 40)
    family = policy("wait-k:1-6")
    g = reading(family, batch, random.Random(3))
    assert set(g[:, 0].tolist()) == {1, 2, 3, 4, 5, 6}
    assert reading(family, batch, random.Random(3)).equal(g)
    assert not reading(family, batch, random.Random(4)).equal(g)
    for drawn, units in zip(g.tolist(), batch.target_units.tolist(), strict=True):  # one k per sentence, not per word
        assert drawn == [min(drawn[0] + t - 1, 10) for t in units]


def test_first() -> None:
    assert first(torch.tensor([[0, 2], [3, 9]]), 3).int().tolist() == [[[0, 0, 0], [1, 1, 0]], [[1, 1, 1], [1, 1, 1]]]


@pytest.mark.parametrize(("new", "before"), [(1, 0), (4, 0), (1, 5), (3, 2), (0, 3)])
def test_causal(new: int, before: int) -> None:
    mask = causal(new, before)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[column <= before + row for column in range(before + new)] for row in range(new)]
