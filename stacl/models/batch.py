"""Encoded sentence pairs on disk, and batches of pairs of similar length within a budget of positions.

The pieces of a corpus are in flat, memory-mapped files. Only the offsets of the pairs are held in memory, so a corpus
may have ten million pairs. The order of an epoch depends on (seed, epoch) alone: a resumed run needs no saved iterator.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from torch import Tensor

from stacl.support import validation
from stacl.support.errors import UserError
from stacl.text.subwords import BEGIN, END, PAD, units_of

NEVER = 2**30  # unit number of padding: larger than any number of units that a policy reads
LONGEST = 2**16 - 1  # maximum number of pieces on one side of a pair: lengths are stored in 16 bits
BUFFER = 2**20  # pieces held in memory before they are written


@dataclass(frozen=True)
class Batch:
    """B sentence pairs of S source and T target positions, the end symbols included."""

    source: Tensor  # [B, S] pieces, END, then PAD
    source_units: Tensor  # [B, S] unit number of each piece, from 1; |x|+1 for END, NEVER for PAD
    source_lengths: Tensor  # [B] |x| in units, without the end
    target_in: Tensor  # [B, T] BEGIN, then the pieces
    target_out: Tensor  # [B, T] the pieces, then END
    target_units: Tensor  # [B, T] unit number that each position predicts, from 1; padding repeats the last

    @property
    def size(self) -> int:
        return self.source.shape[0]

    @property
    def real(self) -> Tensor:
        """[B, T] True for positions that are not padding."""
        return self.target_out != PAD

    def pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """The pairs of the batch as pieces, without end symbols."""
        rows = zip(self.source.cpu().numpy(), self.target_out.cpu().numpy(), strict=True)
        return [(x[: np.count_nonzero(x != PAD) - 1], y[: np.count_nonzero(y != PAD) - 1]) for x, y in rows]

    def to(self, device: torch.device) -> Batch:
        return Batch(**{name: value.to(device) for name, value in vars(self).items()})


def collate(
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    source_ends: np.ndarray,
    target_ends: np.ndarray,
    unit: str,
) -> Batch:
    """A Batch from pairs of piece arrays without end symbols. `*_ends` is True for the pieces that end a word."""
    longest_source = 1 + max(len(source) for source, _ in pairs)
    longest_target = 1 + max(len(target) for _, target in pairs)
    rows = len(pairs)
    source = np.full((rows, longest_source), PAD)
    source_units = np.full((rows, longest_source), NEVER)
    source_lengths = np.zeros(rows, dtype=np.int64)
    target_in = np.full((rows, longest_target), PAD)
    target_out = np.full((rows, longest_target), PAD)
    target_units = np.zeros((rows, longest_target), dtype=np.int64)
    for row, (x, y) in enumerate(pairs):
        units = units_of(x, source_ends, unit)
        length = int(units[-1]) if len(x) else 0
        source[row, : len(x)], source[row, len(x)] = x, END
        source_units[row, : len(x)], source_units[row, len(x)] = units, length + 1
        source_lengths[row] = length
        target_in[row, 0], target_in[row, 1 : len(y) + 1] = BEGIN, y
        target_out[row, : len(y)], target_out[row, len(y)] = y, END
        # The end symbol is predicted as the first piece of the next unit, as in live decoding.
        target_units[row, : len(y)] = units_of(y, target_ends, unit)
        target_units[row, len(y) :] = _next_unit(y, target_ends, unit)
    arrays = (source, source_units, source_lengths, target_in, target_out, target_units)
    return Batch(*(torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)) for array in arrays))


def _next_unit(pieces: np.ndarray, ends_word: np.ndarray, unit: str) -> int:
    """The number of the unit that follows these pieces."""
    return 1 + (len(pieces) if unit == "piece" else int(ends_word[pieces].sum()))


class Encoded:
    """Encoded pairs in a folder: the memory-mapped `pieces.u16` and `lengths.u16`, and the number of pairs.

    `pieces.u16` holds the source and target of each pair in turn; `lengths.u16` holds both lengths of each pair.
    """

    def __init__(self, folder: Path) -> None:
        try:
            count = validation.whole("pairs", json.loads((folder / "encoded.json").read_text())["pairs"])
            if count < 1:
                raise ValueError(f"encoded.json says {count} pairs")
            lengths = np.memmap(folder / "lengths.u16", dtype="<u2", mode="r", shape=(count, 2))
            pieces = np.memmap(folder / "pieces.u16", dtype="<u2", mode="r")
        except (OSError, ValueError, KeyError, TypeError, OverflowError, UserError) as error:
            raise UserError(f"{folder} holds no encoded text: {error}; remove the folder and start again") from None
        # Plain array views: slicing a `memmap` is several times slower.
        self.lengths, self._pieces = (
            np.asarray(lengths),
            np.asarray(pieces),
        )  # [N, 2] pieces of source and target
        self._starts = np.zeros(count + 1, dtype=np.int64)
        self.lengths.sum(axis=1, dtype=np.int64, out=self._starts[1:])
        np.cumsum(self._starts, out=self._starts)
        if self._starts[-1] != len(self._pieces):
            expected = f"{self._starts[-1]} pieces expected, {len(self._pieces)} found"
            raise UserError(f"{folder} is damaged: {expected}; remove the folder and start again")

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        start, end = self._starts[index], self._starts[index + 1]
        middle = start + self.lengths[index, 0]
        return self._pieces[start:middle].astype(np.int64), self._pieces[middle:end].astype(np.int64)

    @classmethod
    def write(cls, folder: Path, pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> Encoded:
        """Write a stream of pairs with a small buffer. `encoded.json` is written last and marks the folder complete."""
        folder.mkdir(parents=True, exist_ok=True)
        count = 0
        lengths, pieces = array("H"), array("H")
        with (
            (folder / "pieces.u16").open("wb") as all_pieces,
            (folder / "lengths.u16").open("wb") as all_lengths,
        ):
            for count, (source, target) in enumerate(pairs, start=1):
                if max(len(source), len(target)) >= LONGEST:
                    raise UserError(f"pair {count} has more than {LONGEST:,} pieces on one side; lower data.max_words")
                lengths.extend((len(source), len(target)))
                pieces.extend(source)
                pieces.extend(target)
                if len(pieces) >= BUFFER:
                    _flush(lengths, all_lengths)
                    _flush(pieces, all_pieces)
            _flush(lengths, all_lengths)
            _flush(pieces, all_pieces)
        if not count:
            raise UserError("the corpus is empty: no sentence pair is left to train on")
        (folder / "encoded.json").write_text(json.dumps({"pairs": count}) + "\n")
        return cls(folder)


def _flush(numbers: array[int], file: BinaryIO) -> None:
    if sys.byteorder == "big":
        numbers.byteswap()
    numbers.tofile(file)
    del numbers[:]


def epoch_batches(lengths: np.ndarray, budget: int, seed: int, epoch: int) -> list[np.ndarray]:
    """The batches of an epoch as arrays of pair numbers, in training order.

    `lengths` is [N, 2]. A batch of B pairs with longest sides S and T (end symbols included) takes B * (S + T)
    positions, at most `budget`. Pairs are sorted by their longer side, then by the other. On captions, 98 % of the
    positions are then real; sorting by one side alone gives 79 %. All steps are vectorised and take 40 bytes per pair,
    so ten million pairs take seconds.
    """
    rng = np.random.default_rng((seed, epoch))
    shuffled = rng.permutation(len(lengths))  # breaks ties differently in every epoch, so the batches differ too
    sides = lengths[shuffled].astype(np.int32) + 1
    # One sort key: the longer side, then the difference of both sides.
    key = sides.max(axis=1).astype(np.int64) << 20
    key += sides[:, 0]
    key -= sides[:, 1]
    by_key = np.argsort(key, kind="stable")
    del key
    order, sides = shuffled[by_key], sides[by_key]
    cuts = _cuts(sides, budget)
    batches = np.split(order, cuts)
    return [batches[i] for i in rng.permutation(len(batches))] if len(order) else []


def _cuts(sides: np.ndarray, budget: int) -> list[int]:
    """Where to cut a sorted list of pairs so that each batch is full. A pair beyond the budget is one batch."""
    cuts: list[int] = []
    start = 0
    while True:
        # An upper bound: a batch is at least as wide as its first pair.
        most = max(1, budget // int(sides[start].sum(dtype=np.int64))) if start < len(sides) else 1
        widest = np.maximum.accumulate(sides[start : start + most + 1], axis=0).sum(axis=1, dtype=np.int64)
        taken = widest * np.arange(1, len(widest) + 1)
        start += max(1, int(np.searchsorted(taken, budget, side="right")))
        if start >= len(sides):
            return cuts
        cuts.append(start)
