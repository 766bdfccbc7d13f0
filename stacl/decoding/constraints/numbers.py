"""Numbers must have the same digits as in the source.

Small models drop digits: 1.000.000 becomes 1,000, and 1990 becomes 190. So a digit may only continue a number of the
source, and a number may not end in its middle.

- The model chooses the marks between digits (1.299,50 is 1,299.50) and the order of the parts of a date.
- A number that begins like no number of the source is not constrained: "zwanzig" may be 20.
- Only the source read so far counts, so the constraint never looks ahead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from stacl.decoding.constraints.base import Constraint, Context
from stacl.decoding.hypothesis import Hypothesis
from stacl.text.subwords import END, SPACE, Subwords

_DIGITS = "0123456789"
_GROUPING = ".,'’"  # marks that separate thousands
_MARKS = _GROUPING + ":/–-"
_ONE_DIGIT, _IN_NUMBERS = frozenset(_DIGITS), frozenset(_DIGITS + _MARKS)
_NUMBER = re.compile(rf"[0-9]+(?:[{_MARKS}][0-9]+)*")
_BEGUN = re.compile(rf"{_NUMBER.pattern}[{_MARKS}]?$")
# After a number that another language may write with more or fewer zeros: 3万 is 30,000, 1.5 million is 150万.
_MULTIPLIER = re.compile(
    r" ?(?:[十百千万亿]|(?:m|b|tr)illi(?:on|ard)|thousand|hundred|tausend|hundert|mio|mrd|tsd|bn\b)", re.IGNORECASE
)
_OF_MONEY = re.compile(r"(?<=[£$€])[0-9.,]+[mk]\b", re.IGNORECASE)  # £189m; 5000 m are metres
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = re.compile(rf"\b(?:{'|'.join(_MONTHS)})")
_LOOK_BACK = 40  # pieces: nothing longer is a number
_REMEMBERED = 64  # most recent numbers of the source: enough for a table that is read aloud


@dataclass(frozen=True)
class _Place:
    """How much of a number of the source has been written: all groups before `group`, and `digits` digits of it.

    1.299,50 has the groups 1, 299 and 50. The second is glued to the first: it is never written alone.
    """

    groups: tuple[str, ...]
    glued: tuple[bool, ...] = (False,)
    multiplied: bool = False  # the number of final zeros may differ
    group: int = 0
    digits: int = 0
    grouped: bool = False  # thousands are separated; then all of them must be
    after_mark: bool = False

    def after(self, character: str) -> Iterator[_Place]:
        """Yield the places after a digit or mark in this number; none if it is not allowed."""
        next_group = replace(self, group=self.group + 1, digits=0, after_mark=character not in _DIGITS)
        next_is_glued = self._is_glued(next_group.group)
        thousands = self.digits > 0 and self._left != "" and len(self._left) % 3 == 0
        if character in _DIGITS:
            if self._left[:1] == character and not (thousands and self.grouped and not self.after_mark):
                yield replace(self, digits=self.digits + 1, after_mark=False)
            elif not self._left and self.multiplied and character == "0":
                yield self
            elif not self._left and next_is_glued and not self.grouped:  # 1.000 is 1000
                yield from next_group.after(character)
            return
        if self.multiplied:
            yield self
        elif thousands and character in _GROUPING:  # 1000 is 1,000
            yield replace(self, grouped=True, after_mark=True)
        if not self._left and next_group.group < len(self.groups):
            yield replace(next_group, grouped=next_is_glued)

    @property
    def another_may_follow(self) -> bool:
        """Whether any other number may follow after a mark, as in the parts of a date."""
        return not self._left and self.may_end

    @property
    def may_end(self) -> bool:
        """Whether the number may end here. 1.000.000 may end after its first group, which may be "1 million"."""
        if self.multiplied:
            return self.digits > 0 and not self._left.strip("0")
        if not self.digits:
            return not self._is_glued(self.group)
        return not self._left and (self.group == 0 or not self._is_glued(self.group + 1))

    @property
    def _left(self) -> str:
        return self.groups[self.group][self.digits :]

    def _is_glued(self, group: int) -> bool:
        return group < len(self.groups) and self.glued[group]

    @property
    def leaves_myriads(self) -> bool:
        """Whether the rest can be written as 万 or 亿."""
        return self.digits > 0 and self._left + "".join(self.groups[self.group + 1 :]) in ("0000", "00000000")


class Numbers(Constraint):
    """Restricts digits to those of the numbers in the source, for a pair of vocabularies."""

    order = 1  # applied last: it yields if another constraint leaves no digit to write

    def __init__(self, source: Subwords, target: Subwords, myriads: bool = False) -> None:
        self._myriads = myriads  # the target counts in ten thousands, and writes months in digits
        self._source_text, self._target_text = _texts(source), _texts(target)
        self._is_source_digit = np.array([text in _ONE_DIGIT for text in self._source_text])
        self._is_digit = np.array([text in _ONE_DIGIT for text in self._target_text])
        self._pieces: dict[str, list[int]] = {character: [] for character in _DIGITS + _GROUPING}
        for number, text in enumerate(self._target_text):
            self._pieces.get(text, []).append(number)
        self._beginnings = lru_cache(maxsize=256)(self._beginnings_in)
        self._places = lru_cache(maxsize=256)(self._places_after)  # each digit continues where the previous one ended

    @classmethod
    def build(cls, context: Context) -> Numbers:
        return cls(context.source, context.target, context.target_language.counts_in_ten_thousands)

    def forbid(self, logits: np.ndarray, hypothesis: Hypothesis, source: Sequence[int] | np.ndarray) -> None:
        written = hypothesis.pieces
        if not written or self._target_text[written[-1]] not in _IN_NUMBERS:
            return
        if not self._is_source_digit[source].any():
            return
        begun = _BEGUN.search("".join(self._target_text[piece] for piece in written[-_LOOK_BACK:]))
        source_text = "".join(self._source_text[piece] for piece in source)
        places = self._places(begun[0], source_text) if begun else ()
        if not begun or not places:
            return
        may_end = any(place.may_end or (self._myriads and place.leaves_myriads) for place in places)
        forbidden = self._is_digit.copy() if may_end else np.full(len(logits), True)
        for character in _DIGITS if begun[0][-1] in _MARKS else _DIGITS + _GROUPING:
            if self._after(places, character, source_text):
                forbidden[self._pieces[character]] = False
        if np.isfinite(logits[~forbidden]).any():  # otherwise another rule or the vocabulary leaves no allowed piece
            logits[forbidden] = -np.inf

    def _places_after(self, written: str, source: str) -> tuple[_Place, ...]:
        """Return the places in the numbers of the source after these digits and marks."""
        return (
            self._after(self._places(written[:-1], source), written[-1], source)
            if written
            else self._beginnings(source)
        )

    def _after(self, places: Sequence[_Place], character: str, source: str) -> tuple[_Place, ...]:
        """Return the places after a digit or mark from any of these places."""
        later = dict.fromkeys(following for place in places for following in place.after(character))
        if character in _MARKS and any(place.another_may_follow for place in places):
            later |= dict.fromkeys(self._beginnings(source))
        return tuple(later)

    def _beginnings_in(self, text: str) -> tuple[_Place, ...]:
        """Return the places where a number may begin: a number of the source, or a part of one."""
        months = _MONTH.findall(text.lower()) if self._myriads else []
        found = [*_source_numbers(text), *(_Place((str(1 + _MONTHS.index(month)),)) for month in months)]
        numbers = list(dict.fromkeys(found))[-_REMEMBERED:]
        return tuple(replace(one, group=n) for one in numbers for n, glued in enumerate(one.glued) if not glued)


def _source_numbers(text: str) -> Iterator[_Place]:
    for found in _NUMBER.finditer(text):
        first, *rest = re.findall(rf"[{_MARKS}]?[0-9]+", found[0])
        if _MULTIPLIER.match(text, found.end()) or _OF_MONEY.match(text, found.start()):
            yield _Place(("".join(filter(str.isdigit, found[0])),), multiplied=True)
            continue
        glued = [False]
        for group in rest:
            after_whole = glued[-1] or (len(glued) == 1 and len(first) < 4)
            glued.append(after_whole and len(group) == 4 and group[0] in _GROUPING)
        yield _Place((first, *(group[1:] for group in rest)), tuple(glued))


def _texts(vocabulary: Subwords) -> list[str]:
    """Return the text of each piece; a space for the end symbol and other pieces without text."""
    return [piece.replace(SPACE, " ") if number > END else " " for number, piece in enumerate(vocabulary.pieces)]
