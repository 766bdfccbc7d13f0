"""The output of `stacl translate`: two redrawn lines on a terminal, plain words in a pipe."""

from __future__ import annotations

import shutil
import sys
from collections import deque
from typing import Protocol, TextIO

from stacl.text.characters import clean
from stacl.text.languages import Language

SHOWN_WORDS = 5000  # per line: limits the memory of a line that never ends
_LEAST_TEXT = 20  # columns that must remain for the text if the lag is shown beside it
_DIM, _PLAIN, _BOLD = "\x1b[2m", "\x1b[0m", "\x1b[1m"


class LiveView(Protocol):
    """Shows a live translation, one line of the source at a time."""

    def set_open_word(self, text: str) -> None:
        """Show letters that do not belong to a finished word yet."""

    def add_key(self, key: str) -> None:
        """Show one more letter of an unfinished word."""

    def add_source(self, word: str) -> None:
        """Show a source word that has arrived."""

    def add_target(self, word: str) -> None:
        """Show a target word."""

    def set_lag(self, words: int) -> None:
        """Show how many words the translation lags behind in the current sentence."""

    def end_line(self) -> None:
        """End the line, on both sides."""


class TerminalView:
    """Two lines, redrawn with every word: the source, and the translation with its lag. A finished line stays."""

    def __init__(self, source: Language, target: Language, out: TextIO | None = None) -> None:
        self._source, self._target, self._out = source, target, out or sys.stdout
        self._drawn = False
        self._clear()

    def _clear(self) -> None:
        self._source_words: deque[str] = deque(maxlen=SHOWN_WORDS)
        self._target_words: deque[str] = deque(maxlen=SHOWN_WORDS)
        self._lag = 0
        self._open_word = ""

    def set_open_word(self, text: str) -> None:
        self._open_word = clean(text)  # as it will look when finished
        self._draw()

    def add_key(self, key: str) -> None:
        self.set_open_word(self._open_word + key)

    def add_source(self, word: str) -> None:
        self._source_words.append(word)
        # Without spaces between words, some of the letters may belong to the next word.
        self._open_word = "" if self._source.splits_at_spaces else self._open_word.partition(word)[2]
        self._draw()

    def add_target(self, word: str) -> None:
        self._target_words.append(word)
        self._draw()

    def set_lag(self, words: int) -> None:
        self._lag = words
        self._draw()

    def end_line(self) -> None:
        self._open_word = ""  # an unfinished word was not translated
        if self._source_words or self._target_words:
            self._draw(finished=True)
            self._out.write("\n\n")
            self._out.flush()
        self._drawn = False
        self._clear()

    def _draw(self, finished: bool = False) -> None:
        width = max(1, shutil.get_terminal_size().columns - 1)
        source = self._source.join([*self._source_words, self._open_word] if self._open_word else self._source_words)
        target, note = self._target.join(self._target_words), ""
        if not finished:  # a finished line stays whole, on as many rows as it needs
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
    """Writes and flushes each target word at once. Each source line gives one line of output."""

    def __init__(self, target: Language, out: TextIO | None = None) -> None:
        self._target, self._out = target, out or sys.stdout
        self._last: str | None = None

    def set_open_word(self, text: str) -> None:
        pass

    def add_key(self, key: str) -> None:
        pass

    def add_source(self, word: str) -> None:
        pass

    def set_lag(self, words: int) -> None:
        pass

    def add_target(self, word: str) -> None:
        self._out.write(self._target.gap(self._last, word) + word)
        self._out.flush()
        self._last = word

    def end_line(self) -> None:
        self._out.write("\n")
        self._out.flush()
        self._last = None


def tail(text: str, width: int) -> str:
    """Return the end of a text, as much as fits into `width` terminal cells. Chinese characters take two cells.

    >>> tail("Ein Mann schläft", 8), tail("Ein Mann", 8), tail("你好世界", 6)
    ('…schläft', 'Ein Mann', '…世界')
    """
    return text if _end(text, width) == text else "…" + _end(text, width - 1)


def _end(text: str, width: int) -> str:
    """Search from the end: this runs for every word, and the text may be an hour long."""
    from wcwidth import wcwidth  # 13 ms, and piped output does not need it

    start = len(text)
    while start > 0 and (width := width - max(0, wcwidth(text[start - 1]))) >= 0:
        start -= 1
    return text[start:]
