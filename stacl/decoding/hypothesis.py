"""The output of a sentence so far, and how much of its source had been read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from stacl.text.subwords import END


@dataclass
class Hypothesis:
    """The output of one sentence so far."""

    pieces: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)  # for each piece, the units read when it was decided
    units: int = 0  # finished units
    in_word: int = 0  # pieces of the word that is not finished yet
    ended: bool = False
    end_read: int = 0  # units read when the end was decided

    def add(self, piece: int, read: int, ends_word: np.ndarray, unit: str) -> None:
        """Append a piece. The end symbol ends the hypothesis."""
        if piece == END:
            self.ended, self.end_read = True, read
            return
        self.pieces.append(piece)
        self.reads.append(read)
        word_ended = bool(ends_word[piece])
        self.in_word = 0 if word_ended else self.in_word + 1
        self.units += 1 if unit == "piece" else int(word_ended)

    def copy(self) -> Hypothesis:
        return replace(self, pieces=self.pieces.copy(), reads=self.reads.copy())

    def between_units(self, unit: str) -> bool:
        """Whether the policy decides here. In word units, all pieces of a word see the same source."""
        return unit == "piece" or self.in_word == 0


@dataclass(frozen=True)
class PrefixState:
    """The state of one sentence when its next piece is decided."""

    committed: Hypothesis
    previous: int  # the piece to feed first
    read: int  # units read, including the end
    source: Sequence[int] | np.ndarray  # source pieces read, including the end symbol if it was read
    source_ended: bool
