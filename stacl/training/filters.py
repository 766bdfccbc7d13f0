"""Leaving out pairs that would teach nothing or harm: empty, too long, of unlikely proportions, seen before.

>>> from stacl.text.languages import language
>>> keep = PairFilter(language("de"), language("en"), longest=6, ratio=2)
>>> pairs = [("Ja .", "Yes ."), ("Ja  .", "Yes ."), ("Ja .", " "), ("Ja", "Well of course that is so")]
>>> list(keep(pairs))
[('Ja .', 'Yes .')]
>>> print(keep.report)
kept 1 of 4 pairs
dropped 1: the same pair came before
dropped 1: a side is empty
dropped 1: a side is more than 2 times as long as the other
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from stacl.corpora.base import Concatenation, Corpus
from stacl.support.errors import UserError
from stacl.text.characters import clean
from stacl.text.languages import Language

LONGEST_WORD = 256  # characters: what has as many is no text, and thousands of pieces


@dataclass(frozen=True)
class FilterReport:
    """What a filter did; printed, one line per reason."""

    seen: int = 0
    dropped: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def kept(self) -> int:
        return self.seen - sum(self.dropped.values())

    def __str__(self) -> str:
        lines = [f"kept {self.kept:,} of {self.seen:,} pairs"]
        return "\n".join(lines + [f"dropped {count:,}: {reason}" for reason, count in self.dropped.items()])


class PairFilter:
    """Pairs in, the good ones out, streamed. `report` counts over all that went through so far.

    Lengths are in words of the language. `ratio` compares them after both got three words for free, so that
    short sentences (`Danke` and `Thank you very much`) are not judged by chance. None switches a test off.
    What is to be `unseen` is kept out on either side: sentences that a model will be measured on.
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
            raise UserError(f"filter: a length ratio is at least 1, not {ratio}")
        self._source, self._target = source, target
        self._shortest, self._longest, self._ratio = shortest, longest, ratio
        self._unseen = {_plain(text) for text in unseen}
        # Sixteen bytes a pair instead of the text: ten million pairs fit into a gigabyte.
        self._before: set[bytes] | None = None if duplicates else set()
        self._seen = 0
        self._dropped: Counter[str] = Counter()

    def __call__(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
        return (pair for pair in pairs if self.accepts(*pair))

    def accepts(self, source: str, target: str) -> bool:
        """Whether a pair is good; counted either way."""
        self._seen += 1
        reason = self._reason(source, target)
        if reason is not None:
            self._dropped[reason] += 1
        return reason is None

    @property
    def report(self) -> FilterReport:
        return FilterReport(self._seen, MappingProxyType(dict(self._dropped.most_common())))

    def _reason(self, source: str, target: str) -> str | None:
        """Why a pair is dropped, in words; the first reason counts."""
        words = self._source.split(source), self._target.split(target)
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
        if self._unseen and not self._unseen.isdisjoint(map(_plain, (source, target))):
            return "a side stands in a set to measure on"
        if self._before is not None:
            # White space and invisible characters do not make another pair.
            text = "\n".join(" ".join(side) for side in words)
            key = hashlib.blake2b(text.encode(), digest_size=16).digest()
            if key in self._before:
                return "the same pair came before"
            self._before.add(key)
        return None


def filtered(corpus: Corpus, split: str, keep: PairFilter) -> Iterator[tuple[str, str]]:
    """The good pairs of a corpus. Repetitions that a list of corpora asks for are meant, and no duplicates:
    a pair is judged once and then comes so many times in a row."""
    for part, times in corpus.parts if isinstance(corpus, Concatenation) else ((corpus, 1),):
        if split in part.splits or part is corpus:
            repeat = times if part.splits.get(split) == "train" else 1
            for pair in keep(part.open(split)):
                yield from (pair for _ in range(repeat))


def _plain(text: str) -> str:
    return " ".join(clean(text).split())
