"""Encoded sentence pairs on disk, and batches of them: bucketed by length, within a budget of positions.

The pieces of a corpus lie in flat files that are mapped into memory, so that ten million lines cost no more
memory than their places. The order of an epoch is a function of (seed, epoch) alone: a resumed run needs no
saved iterator.
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

NEVER = 2**30  # the unit of padding: no policy ever wishes for so much
LONGEST = 2**16 - 1  # pieces on one side of a pair: lengths are stored in 16 bits
HELD = 2**20  # pieces held in memory before they are written


@dataclass(frozen=True)
class Batch:
    """B sentence pairs. S counts source pieces with the end symbol, T target pieces with the end symbol."""

    source: Tensor  # [B, S] pieces, END, then PAD
    source_units: Tensor  # [B, S] number of each piece's unit, from 1; |x|+1 for END, NEVER for PAD
    source_lengths: Tensor  # [B] |x| in units, the end not counted
    target_in: Tensor  # [B, T] BEGIN, then the pieces
    target_out: Tensor  # [B, T] the pieces, then END
    target_units: Tensor  # [B, T] number of the unit that each position decides, from 1; padding repeats the last

    @property
    def size(self) -> int:
        return self.source.shape[0]

    @property
    def real(self) -> Tensor:
        """[B, T] True where there is something to predict."""
        return self.target_out != PAD

    def pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """What it was collated from: pieces without end symbols."""
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
    """A Batch from pairs of piece arrays (without end symbols); `*_ends` say which pieces end a word."""
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
        # The end symbol is decided as the first piece of the next unit, which is how it comes about live.
        target_units[row, : len(y)] = units_of(y, target_ends, unit)
        target_units[row, len(y) :] = _next_unit(y, target_ends, unit)
    arrays = (source, source_units, source_lengths, target_in, target_out, target_units)
    return Batch(*(torch.from_numpy(np.ascontiguousarray(array, dtype=np.int64)) for array in arrays))


def _next_unit(pieces: np.ndarray, ends_word: np.ndarray, unit: str) -> int:
    """The unit that would be decided after these pieces."""
    return 1 + (len(pieces) if unit == "piece" else int(ends_word[pieces].sum()))


class Encoded:
    """Encoded pairs in a folder: `pieces.u16` and `lengths.u16`, mapped, plus the number of pairs.

    One flat file holds source and target of each pair in turn; two lengths a pair say where they lie.
    """

    def __init__(self, folder: Path) -> None:
        try:
            count = validation.whole("pairs", json.loads((folder / "encoded.json").read_text())["pairs"])
            if count < 1:
                raise ValueError(f"encoded.json says {count} pairs")
            lengths = np.memmap(folder / "lengths.u16", dtype="<u2", mode="r", shape=(count, 2))
            pieces = np.memmap(folder / "pieces.u16", dtype="<u2", mode="r")
        except (OSError, ValueError, KeyError, TypeError, OverflowError, UserError) as error:
            raise UserError(f"{folder} holds no encoded text: {error}") from None
        # Plain views of what is mapped: slices of a `memmap` cost several times as much.
        self.lengths, self._pieces = (
            np.asarray(lengths),
            np.asarray(pieces),
        )  # [N, 2] pieces of source and target
        self._starts = np.zeros(count + 1, dtype=np.int64)
        self.lengths.sum(axis=1, dtype=np.int64, out=self._starts[1:])
        np.cumsum(self._starts, out=self._starts)
        if self._starts[-1] != len(self._pieces):
            expected = f"{self._starts[-1]} pieces expected, {len(self._pieces)} found"
            raise UserError(f"{folder} is damaged: {expected}")

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        start, end = self._starts[index], self._starts[index + 1]
        middle = start + self.lengths[index, 0]
        return self._pieces[start:middle].astype(np.int64), self._pieces[middle:end].astype(np.int64)

    @classmethod
    def write(cls, folder: Path, pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> Encoded:
        """Write pairs as they come, holding a few of them; complete only once `encoded.json` is there."""
        folder.mkdir(parents=True, exist_ok=True)
        count = 0
        lengths, pieces = array("H"), array("H")
        with (
            (folder / "pieces.u16").open("wb") as all_pieces,
            (folder / "lengths.u16").open("wb") as all_lengths,
        ):
            for count, (source, target) in enumerate(pairs, start=1):
                if max(len(source), len(target)) >= LONGEST:
                    raise UserError(f"pair {count} has more than {LONGEST:,} pieces on one side; set data.max_words")
                lengths.extend((len(source), len(target)))
                pieces.extend(source)
                pieces.extend(target)
                if len(pieces) >= HELD:
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

    `lengths` is [N, 2]. A batch of B pairs with longest sides S and T (end symbols counted) takes B * (S + T)
    positions, at most `budget`. Pairs are sorted by their longer side first, then by the other: 98 % of the
    positions are then real on captions, where sorting by one side alone gives 79 %. No step in Python is
    taken for a single pair, and a pair costs 40 bytes for a moment: ten million take seconds.
    """
    rng = np.random.default_rng((seed, epoch))
    shuffled = rng.permutation(len(lengths))  # ties fall differently every epoch, so batches differ too
    sides = lengths[shuffled].astype(np.int32) + 1
    # One number sorts by the longer side, then by the difference; together they say the shorter side too.
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
    """Where to cut a list of pairs, so that each batch takes all that fit; too long a pair is alone."""
    cuts: list[int] = []
    start = 0
    while True:
        # No more than this can fit, because a batch is at least as wide as its first pair.
        most = max(1, budget // int(sides[start].sum(dtype=np.int64))) if start < len(sides) else 1
        widest = np.maximum.accumulate(sides[start : start + most + 1], axis=0).sum(axis=1, dtype=np.int64)
        taken = widest * np.arange(1, len(widest) + 1)
        start += max(1, int(np.searchsorted(taken, budget, side="right")))
        if start >= len(sides):
            return cuts
        cuts.append(start)
