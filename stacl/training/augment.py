"""Data augmentation: sources without capitals and final punctuation, and pairs joined with a comma.

Corpora consist of carefully written single sentences. A model trained on them alone translates "Good morning." and "How
are you?", but fails on "Good morning, how are you?"
"""

from __future__ import annotations

import random
from collections import Counter, deque

from stacl.text.languages import Language

Pair = tuple[str, str]  # source and target, words separated by spaces

_MARKS = " .!?…。！？"
_STATEMENT_ENDS = tuple(".!。！")  # a question is not used as an opener
_SENTENCE_ENDS = tuple(_MARKS.strip())
_MAX_OPENER_WORDS, _MAX_SENTENCE_WORDS = 4, 15
_MAX_OPENERS = 2000


def careless(source: str) -> str:
    """Lower-case a sentence and remove its final punctuation, as in hasty typing or speech recognition.

    >>> careless("Wie geht es dir?"), careless("你好 。"), careless("...")
    ('wie geht es dir', '你好', '...')
    """
    return source.rstrip(_MARKS).lower() or source


def chosen(share: float, kind: str, number: int) -> random.Random | None:
    """A random generator for the given share of the pairs, else None. It depends on the arguments alone."""
    if not share:
        return None
    rng = random.Random(f"{kind} {number}")
    return rng if rng.random() < share else None


class OpenerJoiner:
    """Joins a short earlier pair, the opener, to the front of a later pair.

    >>> from stacl.text.languages import language
    >>> joiner = OpenerJoiner(language("de"), language("en"))
    >>> for pair in ("Guten Morgen!", "Good morning!"), ("Ich weiß, wie das geht.", "I know how that works."):
    ...     assert joiner.join(pair, None) == pair
    >>> joiner.join(("Wie geht es dir?", "How are you?"), random.Random(1))
    ('Guten Morgen, wie geht es dir?', 'Good morning, how are you?')
    """

    def __init__(self, source: Language, target: Language) -> None:
        self._languages = (source, target)
        self._inside: tuple[Counter[str], Counter[str]] = (
            Counter(),
            Counter(),
        )  # words that are not first in a sentence
        self._short: deque[Pair] = deque(maxlen=_MAX_OPENERS)

    def join(self, pair: Pair, rng: random.Random | None) -> Pair:
        """The next pair; with a generator, an opener is joined to it if possible."""
        found = self._opened(pair, rng) if rng else pair
        self._remember(pair)
        return found

    def _remember(self, pair: Pair) -> None:
        """Count which words are written in lower case, and keep the pair as an opener if it is short."""
        for text, inside in zip(pair, self._inside, strict=True):
            inside.update(text.split(" ")[1:])
        if all(
            text.endswith(_STATEMENT_ENDS) and len(text.rstrip(_MARKS).split(" ")) <= _MAX_OPENER_WORDS for text in pair
        ):
            self._short.append(pair)

    def _opened(self, pair: Pair, rng: random.Random) -> Pair:
        """The pair with an opener, if there is one and both sides are sentences that are not too long."""
        fits = all(text.endswith(_SENTENCE_ENDS) and text.count(" ") < _MAX_SENTENCE_WORDS for text in pair)
        if not (fits and self._short):
            return pair
        opener = rng.choice(self._short)
        source, target = (self._joined(side, opener[side], pair[side]) for side in (0, 1))
        return source, target

    def _joined(self, side: int, opener: str, text: str) -> str:
        comma = " ，" if self._languages[side].marks_are_words else ","
        first, space, rest = text.partition(" ")
        small, inside = first[:1].lower() + first[1:], self._inside[side]
        return f"{opener.rstrip(_MARKS)}{comma} {small if inside[small] > inside[first] else first}{space}{rest}"
