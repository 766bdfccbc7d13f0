"""Arriving text -> finished words.

Text comes in chunks of any size, as `str` or as UTF-8 `bytes`; a chunk may end inside a word or inside a
character. Out come the finished words and, as events of their own, the ends of lines. Whatever the
chunks, the words of a line are those of `Language.split(line)`.

What is odd has a defined outcome:
- bytes that are no UTF-8 become U+FFFD, as in every decoder;
- only a line feed ends a line; carriage return, tab, form feed, no-break and ideographic space are white
  space;
- control characters and other invisible ones are dropped (`languages.clean`), a word of nothing else is
  no word;
- a word of more than `languages.LONGEST_WORD` characters comes out in pieces of that length, before its end.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from enum import Enum

from stacl.text.languages import Language


class LineEnd(Enum):
    """The type of `LINE_END`: after `event is LINE_END` a type checker knows that the others are words."""

    LINE_END = "\n"


LINE_END = LineEnd.LINE_END
Event = str | LineEnd


class WordReader:
    """Chunks of text in, finished words and line ends out.

    >>> from stacl.text.languages import language
    >>> reader = WordReader(language("de"))
    >>> reader.feed("Ein Ma"), reader.feed("nn "), reader.feed(b"schl\\xc3"), reader.feed(b"\\xa4ft")
    (['Ein'], ['Mann'], [], [])
    >>> reader.close()
    ['schläft', <LineEnd.LINE_END: '\\n'>]
    """

    def __init__(self, language: Language) -> None:
        self._splitter = language.splitter()
        # An incremental decoder cannot be copied, and a session can: keep the bytes of a broken character
        # instead.
        self._bytes = b""
        self._line_begun = False
        self.broken = False  # whether bytes have come that are no UTF-8
        self._first: bytes | None = None  # bytes of all

    def events(self, chunks: Iterable[str | bytes]) -> Iterator[Event]:
        """Of all chunks, each as soon as its chunk is there."""
        for chunk in chunks:
            yield from self.feed(chunk)
        yield from self.close()

    def feed(self, chunk: str | bytes) -> list[Event]:
        """What this chunk finishes, in order."""
        if isinstance(chunk, bytes):
            return self._read(self._decode(chunk, final=False))
        # Text after an unfinished character: its missing bytes will not come any more.
        return self._read(self._decode(b"", final=True) + chunk)

    def close(self) -> list[Event]:
        """The rest; a last line without a line feed ends here. The reader is then as new."""
        events = self._read(self._decode(b"", final=True))
        return events + self._end_line() if self._line_begun else events

    def _decode(self, chunk: bytes, final: bool) -> str:
        if self._first is None and chunk:
            self._first = chunk[:2]
        self._bytes += chunk
        text, used = codecs.utf_8_decode(self._bytes, "replace", final)
        if text.count("\ufffd") > self._bytes[:used].count("\ufffd".encode()):  # some were not written so
            self.broken = True
        self._bytes = self._bytes[used:]
        return text

    @property
    def begins_as_utf16(self) -> bool:
        return self._first in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

    def _read(self, text: str) -> list[Event]:
        events: list[Event] = []
        *lines, rest = text.split("\n")
        for line in lines:
            events += self._splitter.feed(line)
            events += self._end_line()
        if rest:
            self._line_begun = True
            events += self._splitter.feed(rest)
        return events

    def _end_line(self) -> list[Event]:
        self._line_begun = False
        return [*self._splitter.close(), LINE_END]


def read_words(chunks: Iterable[str | bytes], language: Language) -> Iterator[Event]:
    """The words and line ends of one text.

    >>> from stacl.text.languages import language
    >>> list(read_words(["Guten Tag\\n"], language("de")))[:2]
    ['Guten', 'Tag']
    """
    return WordReader(language).events(chunks)
