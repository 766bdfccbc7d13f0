"""A large corpus is written, mapped and batched without being loaded into memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from stacl.models.batch import BUFFER, Encoded, epoch_batches
from stacl.support.errors import UserError

PAIRS = 300_000
MEGABYTE = 2**20


def generated(count: int) -> Iterator[tuple[list[int], list[int]]]:
    """A stream of generated pairs of 5 to 44 pieces per side."""
    for number in range(count):
        yield [number % 997] * (5 + number % 40), [number % 991] * (5 + number * 7 % 40)


Result = TypeVar("Result")


def peak_of(work: Callable[[], Result]) -> tuple[Result, int]:
    """The result of the work, and its peak memory in bytes."""
    tracemalloc.start()
    try:
        found = work()
        return found, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    folder = tmp_path_factory.mktemp("corpus")
    _, peak = peak_of(lambda: Encoded.write(folder, generated(PAIRS)))
    return folder, peak


def test_writing_holds_a_few_pairs_only(written: tuple[Path, int]) -> None:
    """14 million pieces are written with a constant buffer; only the offsets take 8 bytes per pair."""
    folder, peak = written
    assert (folder / "pieces.u16").stat().st_size > 25 * MEGABYTE
    assert peak < 6 * 2 * BUFFER + 12 * PAIRS


def test_opening_maps_the_corpus(written: tuple[Path, int]) -> None:
    data, peak = peak_of(lambda: Encoded(written[0]))
    assert len(data) == PAIRS
    assert peak < 10 * PAIRS  # an offset takes 8 bytes
    source, target = data[PAIRS - 1]
    expected = list(generated(PAIRS))[-1]
    assert (source.tolist(), target.tolist()) == expected


def test_batching_is_complete_and_takes_little_memory(written: tuple[Path, int]) -> None:
    data = Encoded(written[0])
    batches, peak = peak_of(lambda: epoch_batches(data.lengths, 4096, 1, 0))
    assert peak < 64 * PAIRS
    numbers = np.concatenate(batches)
    assert len(numbers) == PAIRS
    assert np.array_equal(np.sort(numbers), np.arange(PAIRS))  # every pair exactly once
    sides = data.lengths.astype(np.int64) + 1
    taken = [len(batch) * sides[batch].max(axis=0).sum() for batch in batches]
    assert max(taken) <= 4096
    assert sides.sum() / sum(taken) > 0.94  # the share of real positions


def one_by_one(lengths: np.ndarray, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
    """The definition of epoch_batches, pair by pair."""
    rng = np.random.default_rng((seed, epoch))
    shuffled = rng.permutation(len(lengths)).tolist()
    sides = (lengths.astype(int) + 1).tolist()
    order = sorted(shuffled, key=lambda i: (max(sides[i]), sides[i][0] - sides[i][1]))
    batches: list[list[int]] = []
    for pair in order:
        grown = [*batches[-1], pair] if batches else []
        width = sum(max(sides[i][side] for i in grown) for side in (0, 1)) if grown else 0
        if grown and len(grown) * width <= budget:
            batches[-1] = grown
        else:
            batches.append([pair])
    return [np.array(batches[i]) for i in rng.permutation(len(batches))]


@pytest.mark.parametrize("budget", [3, 40, 700])
@pytest.mark.parametrize("count", [1, 2, 300])
def test_batches_match_the_definition(count: int, budget: int) -> None:
    lengths = np.random.default_rng(count).integers(1, 30, (count, 2)).astype(np.uint16)
    for epoch in (0, 1):
        found = epoch_batches(lengths, budget, 5, epoch)
        expected = one_by_one(lengths, budget, 5, epoch)
        assert [batch.tolist() for batch in found] == [batch.tolist() for batch in expected]


def test_no_pairs_give_no_batches() -> None:
    assert epoch_batches(np.zeros((0, 2), dtype=np.uint16), 100, 1, 0) == []


def test_longest_lengths_do_not_overflow() -> None:
    """Lengths are stored in 16 bits; sums with end symbols need more."""
    lengths = np.full((3, 2), 65_534, dtype=np.uint16)
    assert [len(batch) for batch in epoch_batches(lengths, 4 * 65_535, 1, 0)] in ([1, 2], [2, 1])


def test_a_sentence_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"pair 2 has more than 65,535 pieces"):
        Encoded.write(tmp_path, iter([([1], [2]), ([1] * 70_000, [2])]))
