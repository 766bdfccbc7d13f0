"""Training pairs as people type: in a hurry, and with a word or two before what they mean to say.

Corpora are made of careful sentences, one at a time. Without these a model knows "Good morning." and "How are you?" and
stumbles over "Good morning, how are you?"
"""

from __future__ import annotations

import random
from collections import Counter, deque

from stacl.text.languages import Language

Pair = tuple[str, str]  # source and target, words set apart by spaces

_MARKS = " .!?…。！？"
_STATED = tuple(".!。！")  # an opener states or calls, and does not ask
_ENDED = tuple(_MARKS.strip())
_OPENER_WORDS, _OPENED_WORDS = 4, 15  # at the most: who says more makes two sentences of it
_REMEMBERED = 2000


def careless(source: str) -> str:
    """As it is typed in a hurry, or heard by a machine that writes no marks; what it means is the same.

    >>> careless("Wie geht es dir?"), careless("你好 。"), careless("...")
    ('wie geht es dir', '你好', '...')
    """
    return source.rstrip(_MARKS).lower() or source


def drawn(share: float, kind: str, number: int) -> random.Random | None:
    """For this share of the pairs, something to draw from; the same for the same pair, each time that data are made."""
    if not share:
        return None
    rng = random.Random(f"{kind} {number}")
    return rng if rng.random() < share else None


class Openers:
    """Sets a short sentence that came before in front of a later one, as people do.

    >>> from stacl.text.languages import language
    >>> openers = Openers(language("de"), language("en"))
    >>> for pair in ("Guten Morgen!", "Good morning!"), ("Ich weiß, wie das geht.", "I know how that works."):
    ...     assert openers.perhaps(pair, None) == pair
    >>> openers.perhaps(("Wie geht es dir?", "How are you?"), random.Random(1))
    ('Guten Morgen, wie geht es dir?', 'Good morning, how are you?')
    """

    def __init__(self, source: Language, target: Language) -> None:
        self._languages = (source, target)
        self._inside: tuple[Counter[str], Counter[str]] = (Counter(), Counter())  # words that begin no sentence
        self._short: deque[Pair] = deque(maxlen=_REMEMBERED)

    def perhaps(self, pair: Pair, rng: random.Random | None) -> Pair:
        """The next pair as it is or, if there is something to draw from, with another before it."""
        found = self._opened(pair, rng) if rng else pair
        self._notice(pair)
        return found

    def _notice(self, pair: Pair) -> None:
        """Learn from it which words are written small, and keep it if it is short."""
        for text, inside in zip(pair, self._inside, strict=True):
            inside.update(text.split(" ")[1:])
        if all(text.endswith(_STATED) and len(text.rstrip(_MARKS).split(" ")) <= _OPENER_WORDS for text in pair):
            self._short.append(pair)

    def _opened(self, pair: Pair, rng: random.Random) -> Pair:
        """If one was kept, and both sides of the pair are sentences that are not too long."""
        fits = all(text.endswith(_ENDED) and text.count(" ") < _OPENED_WORDS for text in pair)
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
