"""Filters for training pairs: drop empty, overlong, badly proportioned and repeated ones.

>>> from stacl.text.languages import language
>>> keep = PairFilter(language("de"), language("en"), longest=6, ratio=2)
>>> pairs = [("Ja .", "Yes ."), ("Ja  .", "Yes ."), ("Ja .", " "), ("Ja", "Well of course that is so")]
>>> [(pair.source, pair.target) for pair in keep(pairs)]
[('Ja .', 'Yes .')]
>>> print(keep.report)
kept 1 of 4 pairs
dropped 1: duplicate of an earlier pair
dropped 1: a side is empty
dropped 1: a side is more than 2 times as long as the other
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from stacl.corpora.base import Concatenation, Corpus
from stacl.support.errors import UserError
from stacl.text.characters import clean
from stacl.text.languages import Language

LONGEST_WORD = 256  # characters; a longer word is not text, and has thousands of pieces


class SegmentedPair(NamedTuple):
    """A pair of sentences and their words: segmentation is slow, so it is done once."""

    source: str
    target: str
    source_words: list[str]
    target_words: list[str]

    def joined(self) -> tuple[str, str]:
        """Both sides with their words separated by single spaces."""
        return " ".join(self.source_words), " ".join(self.target_words)


def segmented(pairs: Iterable[tuple[str, str]], source: Language, target: Language) -> Iterator[SegmentedPair]:
    """The pairs with their words."""
    return (SegmentedPair(one, other, source.split(one), target.split(other)) for one, other in pairs)


@dataclass(frozen=True)
class FilterReport:
    """How many pairs a filter has seen and dropped, and why."""

    seen: int = 0
    dropped: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def kept(self) -> int:
        return self.seen - sum(self.dropped.values())

    def __str__(self) -> str:
        lines = [f"kept {self.kept:,} of {self.seen:,} pairs"]
        return "\n".join(lines + [f"dropped {count:,}: {reason}" for reason, count in self.dropped.items()])


class PairFilter:
    """Streams the pairs that pass all tests, with their words. `report` counts all pairs so far.

    Lengths are in words of the language. `ratio` is the maximum length ratio after adding 3 words to each side, so that
    short pairs (`Danke` and `Thank you very much`) pass. None switches a test off. A pair is dropped if either side
    occurs in `unseen`, the sentences of the test sets.
    """

    GRACE = 3

    def __init__(
        self,
        source: Language,
        target: Language,
        shortest: int = 1,
        longest: int | None = None,
        ratio: float | None = None,
        duplicates: bool = False,
        unseen: Iterable[str] = (),
    ) -> None:
        if shortest < 1 or (longest is not None and longest < shortest):
            raise UserError(f"filter: expected 1 <= shortest <= longest, found {shortest} and {longest}")
        if ratio is not None and not ratio >= 1:  # nan is not
            raise UserError(f"filter: the length ratio must be at least 1, not {ratio}")
        self._source, self._target = source, target
        self._shortest, self._longest, self._ratio = shortest, longest, ratio
        self._unseen = {_plain(text) for text in unseen}
        # 16 bytes per pair instead of the text: ten million pairs fit into one gigabyte.
        self._before: set[bytes] | None = None if duplicates else set()
        self._seen = 0
        self._dropped: Counter[str] = Counter()

    def __call__(self, pairs: Iterable[tuple[str, str]]) -> Iterator[SegmentedPair]:
        return filter(self.accepts, segmented(pairs, self._source, self._target))

    def accepts(self, pair: SegmentedPair) -> bool:
        """Whether a pair passes all tests; it is counted either way."""
        self._seen += 1
        reason = self._reason(pair)
        if reason is not None:
            self._dropped[reason] += 1
        return reason is None

    @property
    def report(self) -> FilterReport:
        return FilterReport(self._seen, MappingProxyType(dict(self._dropped.most_common())))

    def _reason(self, pair: SegmentedPair) -> str | None:
        """The first reason to drop a pair."""
        words = pair.source_words, pair.target_words
        fewer, more = sorted(map(len, words))
        if fewer == 0:
            return "a side is empty"
        if fewer < self._shortest:
            return f"a side has fewer than {self._shortest} words"
        if self._longest is not None and more > self._longest:
            return f"a side has more than {self._longest} words"
        if self._longest is not None and max(len(word) for side in words for word in side) >= LONGEST_WORD:
            return f"a side has a word of {LONGEST_WORD} characters or more"
        if self._ratio is not None and more + self.GRACE > self._ratio * (fewer + self.GRACE):
            return f"a side is more than {self._ratio:g} times as long as the other"
        if self._unseen and not self._unseen.isdisjoint(map(_plain, (pair.source, pair.target))):
            return "a side occurs in a set of data.unseen"
        if self._before is not None:
            # Pairs that differ only in white space and invisible characters are duplicates.
            text = "\n".join(pair.joined())
            key = hashlib.blake2b(text.encode(), digest_size=16).digest()
            if key in self._before:
                return "duplicate of an earlier pair"
            self._before.add(key)
        return None


def filtered(corpus: Corpus, split: str, keep: PairFilter) -> Iterator[SegmentedPair]:
    """The pairs of a split that pass the filter. A pair of `NAME*3` is tested once and then repeated three times."""
    for part, times in corpus.parts if isinstance(corpus, Concatenation) else ((corpus, 1),):
        if split in part.splits or part is corpus:
            repeat = times if part.splits.get(split) == "train" else 1
            for pair in keep(part.open(split)):
                yield from (pair for _ in range(repeat))


def _plain(text: str) -> str:
    return " ".join(clean(text).split())
