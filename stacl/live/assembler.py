"""Assembles pieces into words with delays, and inserts the words that are copied from the source."""

from __future__ import annotations

import copy

from stacl.text.passthrough import SourceSentence
from stacl.text.subwords import END, Subwords

Word = tuple[str, int]  # its text, and its delay: the source words that had arrived when it was decided


class WordAssembler:
    """Builds the output words of one sentence piece by piece. Live and batched decoding share it."""

    def __init__(self, source: SourceSentence, target: Subwords) -> None:
        self.source = source
        self._target = target
        self._pieces: list[int] = []  # of the word that is not finished yet
        self._count = 0  # words so far
        self._last = ""

    def add(self, piece: int, read: int, unit: str) -> list[Word]:
        """Return the words that this piece finishes. It was decided after `read` source units. END ends a word."""
        if piece != END:
            self._pieces.append(piece)
            if not self._target.ends_word[piece]:
                return []
        text = self._target.decode_word(self._pieces) if self._pieces else ""
        self._pieces = []
        if not text:
            return []
        delay = self.source.delay(read, unit)
        return self._counted([*self.source.copies_before(delay, self._count + 1), text], delay)

    def finish(self) -> list[Word]:
        """Return the words that are copied after the translation."""
        return self._counted(self.source.copies_at_end(self._last), len(self.source.words))

    def copy(self, source: SourceSentence) -> WordAssembler:
        """Return a copy with the same progress, over a copy of the source sentence."""
        twin = copy.copy(self)
        twin.source, twin._pieces = source, self._pieces.copy()
        return twin

    def _counted(self, words: list[str], delay: int) -> list[Word]:
        self._count += len(words)
        self._last = words[-1] if words else self._last
        return [(word, delay) for word in words]
