"""Batches cover every pair once per epoch within the budget and follow the seed; encoded text on disk."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stacl.models.batch import NEVER, Encoded, collate, epoch_batches
from stacl.support.errors import UserError
from stacl.text.subwords import BEGIN, END, PAD, Subwords
from tests.helpers import ENDS_WORD, random_pieces
from tests.samples import CORPORA, SAMPLE, lines

# A word is any number of inner pieces (4, 5, 7, 8 ...) and a final piece (6, 9, 12 ...).
LONG, SHORT = np.array([4, 6, 9, 5, 7, 12]), np.array([6])


def test_collate_in_words() -> None:
    batch = collate([(LONG, SHORT), (SHORT, LONG)], ENDS_WORD, ENDS_WORD, "word")
    assert batch.size == 2
    assert batch.source.tolist() == [[4, 6, 9, 5, 7, 12, END], [6, END, PAD, PAD, PAD, PAD, PAD]]
    assert batch.source_units.tolist() == [[1, 1, 2, 3, 3, 3, 4], [1, 2, NEVER, NEVER, NEVER, NEVER, NEVER]]
    assert batch.source_lengths.tolist() == [3, 1]
    assert batch.target_in.tolist() == [[BEGIN, 6, PAD, PAD, PAD, PAD, PAD], [BEGIN, 4, 6, 9, 5, 7, 12]]
    assert batch.target_out.tolist() == [[6, END, PAD, PAD, PAD, PAD, PAD], [4, 6, 9, 5, 7, 12, END]]
    # The end is predicted as the first piece of the next word; padding repeats it.
    assert batch.target_units.tolist() == [[1, 2, 2, 2, 2, 2, 2], [1, 1, 2, 3, 3, 3, 4]]
    assert batch.real.tolist() == [[True] * 2 + [False] * 5, [True] * 7]


def test_collate_in_pieces() -> None:
    batch = collate([(LONG, SHORT), (SHORT, LONG)], ENDS_WORD, ENDS_WORD, "piece")
    assert batch.source_units.tolist() == [[1, 2, 3, 4, 5, 6, 7], [1, 2, NEVER, NEVER, NEVER, NEVER, NEVER]]
    assert batch.source_lengths.tolist() == [6, 1]
    assert batch.target_units.tolist() == [[1, 2, 2, 2, 2, 2, 2], [1, 2, 3, 4, 5, 6, 7]]


@pytest.mark.parametrize("unit", ["word", "piece"])
def test_collate_keeps_every_pair(unit: str) -> None:
    rng = random.Random(4)
    pairs = [(random_pieces(rng, rng.randint(0, 9)), random_pieces(rng, rng.randint(0, 9))) for _ in range(20)]
    batch = collate(pairs, ENDS_WORD, ENDS_WORD, unit)
    assert all(value.dtype == torch.int64 for value in vars(batch).values())
    assert batch.source.shape == batch.source_units.shape == (20, 1 + max(len(x) for x, _ in pairs))
    assert batch.target_in.shape == batch.target_out.shape == batch.target_units.shape
    for row, (x, y) in enumerate(pairs):
        assert batch.source[row, : len(x)].tolist() == x.tolist()
        assert batch.source[row, len(x)] == END
        assert batch.source_units[row, len(x)] == batch.source_lengths[row] + 1
        assert batch.source_lengths[row] == (ENDS_WORD[x].sum() if unit == "word" else len(x))
        assert batch.target_in[row, 1 : len(y) + 1].tolist() == batch.target_out[row, : len(y)].tolist() == y.tolist()
        assert batch.real[row].sum() == len(y) + 1
        units = batch.target_units[row].tolist()
        assert units == sorted(units)
        assert units[0] == 1


def random_lengths(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    source = rng.integers(1, 60, count)
    return np.stack([source, np.maximum(1, source + rng.integers(-8, 9, count))], axis=1).astype(np.int32)


@pytest.mark.parametrize("budget", [150, 400, 4096])
def test_every_pair_once_per_epoch_within_the_budget(budget: int) -> None:
    lengths = random_lengths(3000)
    for epoch in range(3):
        batches = epoch_batches(lengths, budget, seed=7, epoch=epoch)
        assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
        for batch in batches:
            sides = lengths[batch] + 1
            assert len(batch) * int(sides.max(axis=0).sum()) <= budget


def test_a_pair_beyond_the_budget_is_its_own_batch() -> None:
    lengths = np.array([[5, 5], [900, 3], [4, 6]])
    batches = epoch_batches(lengths, 64, seed=1, epoch=0)
    assert sorted(map(sorted, batches)) == [[0, 2], [1]]


def test_no_pairs_give_no_batches() -> None:
    assert epoch_batches(np.zeros((0, 2), dtype=np.int32), 64, seed=1, epoch=0) == []


def test_the_order_follows_from_seed_and_epoch_alone() -> None:
    lengths = random_lengths(8000) // 4 + 1  # as in real text, many pairs have the same lengths

    def order(seed: int, epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in epoch_batches(lengths, 500, seed, epoch)]

    first = order(3, 1)
    np.random.seed(99)  # the global generator has no effect
    assert order(3, 1) == first
    for other in (order(3, 2), order(4, 1)):
        # The composition of the batches differs too, not only their order.
        assert len({frozenset(batch) for batch in other} & {frozenset(batch) for batch in first}) < len(first) / 2


def test_lengths_are_mixed_over_an_epoch() -> None:
    """Batches have pairs of similar length, but short and long batches come in random order."""
    lengths = random_lengths(5000)
    means = [lengths[batch].mean() for batch in epoch_batches(lengths, 800, seed=1, epoch=0)]
    steps = np.abs(np.diff(means)).mean()
    assert steps > 0.5 * np.std(means)


@pytest.mark.parametrize(
    ("folder", "root", "repeated", "vocabulary"),
    [("deen-large", SAMPLE, 40, 1200), pytest.param("deen-small", CORPORA, 1, 6000, marks=pytest.mark.corpora)],
)
def test_batches_have_little_padding(folder: str, root: Path, repeated: int, vocabulary: int) -> None:
    """The sample is repeated: a few hundred lines have too many different lengths for full batches."""
    words = [[line.split() for line in lines(f"{folder}/train.{code}", root=root)] for code in ("de", "en")]
    pieces = Subwords.train(words[0][::5] + words[1][::5], vocabulary)
    once = np.array([[len(pieces.encode(sentence)) for sentence in side] for side in words]).T
    lengths = np.tile(once, (repeated, 1))
    for budget in (1024, 4096, 16_384):
        batches = epoch_batches(lengths, budget, seed=1, epoch=0)
        taken = sum(len(batch) * int((lengths[batch] + 1).max(axis=0).sum()) for batch in batches)
        real = (lengths + 1).sum() / taken
        assert real > 0.9, f"{real:.3f} of the positions are real at a budget of {budget}"


def test_encoded_pairs_round_trip(tmp_path: Path) -> None:
    rng = random.Random(2)
    drawn = [([rng.randrange(65_536) for _ in range(rng.randint(0, 40))] for _ in range(2)) for _ in range(50)]
    pairs: list[Any] = [tuple(map(tuple, pair)) for pair in drawn]
    written = Encoded.write(tmp_path / "deep" / "data", iter(pairs))
    read = Encoded(tmp_path / "deep" / "data")
    assert len(written) == len(read) == len(pairs)
    assert read.lengths.tolist() == [[len(source), len(target)] for source, target in pairs]
    for index, (source, target) in enumerate(pairs):
        found = read[index]
        assert (found[0].tolist(), found[1].tolist()) == (list(source), list(target))
        assert found[0].dtype == np.int64


def test_a_damaged_folder_is_reported(tmp_path: Path) -> None:
    def fresh() -> Path:
        folder = tmp_path / "data"
        Encoded.write(folder, [((1, 2, 3), (4, 5)), ((6,), (7, 8))])
        return folder

    with pytest.raises(UserError, match="holds no encoded text"):
        Encoded(tmp_path / "nothing")
    for name in ("encoded.json", "pieces.u16", "lengths.u16"):
        (fresh() / name).unlink()
        with pytest.raises(UserError, match="holds no encoded text"):
            Encoded(tmp_path / "data")
    for content in ('{"pears": 2}', "[]", '{"pairs": -3}', '{"pairs": 0}', '{"pairs": "x"}', f'{{"pairs": {10**30}}}'):
        (fresh() / "encoded.json").write_text(content)
        with pytest.raises(UserError, match="holds no encoded text"):
            Encoded(tmp_path / "data")
    whole = (fresh() / "pieces.u16").read_bytes()
    (tmp_path / "data" / "pieces.u16").write_bytes(whole[:-2])
    with pytest.raises(UserError, match="8 pieces expected, 7 found"):
        Encoded(tmp_path / "data")
    short = (fresh() / "lengths.u16").read_bytes()[:-4]
    (tmp_path / "data" / "lengths.u16").write_bytes(short)
    with pytest.raises(UserError, match="holds no encoded text"):
        Encoded(tmp_path / "data")
    with pytest.raises(UserError, match="the corpus is empty"):
        Encoded.write(tmp_path / "empty", [])
    with pytest.raises(UserError, match="holds no encoded text"):
        Encoded(tmp_path / "empty")
