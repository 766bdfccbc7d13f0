"""Forbids endless repetition of a phrase.

A block of whole words may be written twice in a row. It may be written more often only if the source repeats something
as often ("nein, nein, nein, nein"). Case and punctuation of the source are ignored ("Nein, nein, nein!"). Only the
source read so far counts, so the constraint never looks ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stacl.decoding.constraints.base import Constraint, Context
from stacl.decoding.hypothesis import Hypothesis

ALLOWED = 2  # times in a row, independent of the source
LONGEST = 24  # pieces of the longest block: about a dozen words


class Repetition(Constraint):
    """Forbids beginning a block again that was written as often as is allowed."""

    def __init__(self, ends_word: np.ndarray, words_of: Callable[[Sequence[int]], list[str]]) -> None:
        self._ends_word, self._words_of = ends_word, words_of

    @classmethod
    def build(cls, context: Context) -> Repetition:
        return cls(context.target.ends_word, context.source.words)

    def forbid(self, logits: np.ndarray, hypothesis: Hypothesis, source: Sequence[int] | np.ndarray) -> None:
        if hypothesis.in_word == 0:
            logits[would_repeat(hypothesis.pieces, self._ends_word, source, self._words_of)] = -np.inf


def would_repeat(
    written: Sequence[int],
    ends_word: np.ndarray,
    source: Sequence[int] | np.ndarray,
    words_of: Callable[[Sequence[int]], list[str]] | None = None,
) -> list[int]:
    """Return the pieces that would begin a block again that was written as often as is allowed.

    Call it between two words. `words_of` returns the words of source pieces.

    >>> ends = np.array([True] * 9)
    >>> would_repeat([5, 6, 7, 6, 7], ends, source=[1, 2, 3]), would_repeat([5, 6, 7, 6, 7], ends, source=[2, 2, 2])
    ([6], [])
    """
    found = [first for first, times in _ending_blocks(written, ends_word) if times >= ALLOWED]
    if not found:
        return []
    allowed = max(ALLOWED, times_in_a_row(source))
    if words_of:
        bare = ("".join(filter(str.isalnum, word)).casefold() for word in words_of([int(piece) for piece in source]))
        allowed = max(allowed, times_in_a_row([word for word in bare if word]))
    return [first for first, times in _ending_blocks(written, ends_word) if times >= allowed]


def _ending_blocks(written: Sequence[int], ends_word: np.ndarray) -> list[tuple[int, int]]:
    """Return (first piece, times in a row) of each block of whole words that is repeated at the end of the text."""
    found = []
    for size in range(1, min(LONGEST, len(written) // 2) + 1):
        block, times = written[-size:], 1
        while written[-size * (times + 1) : -size * times] == block:
            times += 1
        if times > 1 and ends_word[block[-1]]:
            found.append((block[0], times))
    return found


def times_in_a_row(pieces: Sequence[int] | Sequence[str] | np.ndarray) -> int:
    """Return the largest number of times in a row that any block of pieces or words occurs.

    >>> times_in_a_row([4, 1, 2, 1, 2, 1, 2, 5]), times_in_a_row([1, 2, 3])
    (3, 1)
    """
    row, most = np.asarray(pieces), 1
    for size in range(1, min(LONGEST, len(row) // 2) + 1):
        different = np.flatnonzero(row[size:] != row[:-size])
        longest = np.diff(different, prepend=-1, append=len(row) - size).max() - 1  # equal items in a row
        most = max(most, 1 + int(longest) // size)
    return most
