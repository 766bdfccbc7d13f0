"""The live view on a terminal: the source above, the translation below, and how far it lags behind."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections import deque
from typing import TextIO

from stacl.text.characters import clean
from stacl.text.languages import Language

SHOWN_WORDS = 5000  # of a line: one without an end does not fill the memory
_LEAST_TEXT = 20  # columns, before the lag is shown beside it
_DIM, _PLAIN, _BOLD = "\x1b[2m", "\x1b[0m", "\x1b[1m"


def columns(text: str) -> int:
    """Cells that a text takes on a terminal: Chinese characters take two, accents and joiners none.

    >>> columns("Tür"), columns("Tu\\u0308r"), columns("中文")
    (3, 3, 4)
    """
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def tail(text: str, width: int) -> str:
    """The end of a text, as much as fits.

    >>> tail("Ein Mann schläft", 8), tail("Ein Mann", 8)
    ('…schläft', 'Ein Mann')
    """
    return text if _end(text, width) == text else "…" + _end(text, width - 1)


def _end(text: str, width: int) -> str:
    """Looked for from the end: the text may be an hour long, and this runs with every word."""
    start = len(text)
    while start > 0 and (width := width - _cells(text[start - 1])) >= 0:
        start -= 1
    return text[start:]


class TerminalView:
    """Two lines that are written anew with every word; a finished sentence stays where it is."""

    def __init__(self, source: Language, target: Language, out: TextIO | None = None) -> None:
        self._source, self._target, self._out = source, target, out or sys.stdout
        self._drawn = False
        self._clear()

    def _clear(self) -> None:
        self._heard: deque[str] = deque(maxlen=SHOWN_WORDS)
        self._said: deque[str] = deque(maxlen=SHOWN_WORDS)
        self._lag = 0
        self._typing = ""

    def typing(self, text: str) -> None:
        """The letters that belong to no finished word yet."""
        self._typing = clean(text)  # as the words will be
        self._draw()

    def typed(self, key: str) -> None:
        """One more of them."""
        self.typing(self._typing + key)

    def heard(self, word: str) -> None:
        self._heard.append(word)
        # Where words have no spaces between them, some of what was typed may belong to the next.
        self._typing = "" if self._source.splits_at_spaces else self._typing.partition(word)[2]
        self._draw()

    def said(self, word: str) -> None:
        self._said.append(word)
        self._draw()

    def behind(self, words: int) -> None:
        """How far the translation now is behind, in words of the present sentence."""
        self._lag = words
        self._draw()

    def end(self) -> None:
        self._typing = ""  # a word that was broken off was never heard
        if self._heard or self._said:
            self._draw(finished=True)
            self._out.write("\n\n")
            self._out.flush()
        self._drawn = False
        self._clear()

    def _draw(self, finished: bool = False) -> None:
        width = max(1, shutil.get_terminal_size().columns - 1)
        source = self._source.join([*self._heard, self._typing] if self._typing else self._heard)
        target, note = self._target.join(self._said), ""
        if not finished:  # else all of it stays, on as many lines as it takes
            if self._lag > 0:
                note = f"  {self._lag} word{'s' if self._lag != 1 else ''} behind"
            if width - len(note) < _LEAST_TEXT:
                note = ""
            source, target = tail(source, width), tail(target, width - len(note))
        back = "\x1b[1A\r" if self._drawn else ""
        self._out.write(f"{back}\x1b[J{_DIM}{source}{_PLAIN}\n{_BOLD}{target}{_PLAIN}{_DIM}{note}{_PLAIN}")
        self._out.flush()
        self._drawn = True


class PlainView:
    """Piped: each word is written and flushed at once; a line out for a line in."""

    def __init__(self, target: Language, out: TextIO | None = None) -> None:
        self._target, self._out = target, out or sys.stdout
        self._last: str | None = None

    def typing(self, text: str) -> None:
        pass

    def typed(self, key: str) -> None:
        pass

    def heard(self, word: str) -> None:
        pass

    def behind(self, words: int) -> None:
        pass

    def said(self, word: str) -> None:
        self._out.write(self._target.gap(self._last, word) + word)
        self._out.flush()
        self._last = word

    def end(self) -> None:
        self._out.write("\n")
        self._out.flush()
        self._last = None
