"""Reads words from text while it arrives.

Text arrives in chunks of any size, as `str` or as UTF-8 `bytes`. A chunk may end inside a word or a character. The
output is finished words and line ends. However the text is chunked, the words of a line are `Language.split(line)`.

Unusual input has a defined result:

- Bytes that are not UTF-8 become U+FFFD.
- Only a line feed ends a line. Carriage return, tab, form feed, no-break and ideographic space are white space.
- Invisible characters are dropped (`characters.clean`). A word of only such characters is dropped.
- A word of more than `splitters.LONGEST_WORD` characters is returned in pieces of that length.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from enum import Enum

from stacl.text.languages import Language


class LineEnd(Enum):
    """The type of `LINE_END`. Type checkers infer from `event is not LINE_END` that the event is a word."""

    LINE_END = "\n"


LINE_END = LineEnd.LINE_END
Event = str | LineEnd


class WordReader:
    """Takes chunks of text and returns finished words and line ends.

    >>> from stacl.text.languages import language
    >>> reader = WordReader(language("de"))
    >>> reader.feed("Ein Ma"), reader.feed("nn "), reader.feed(b"schl\\xc3"), reader.feed(b"\\xa4ft")
    (['Ein'], ['Mann'], [], [])
    >>> reader.close()
    ['schläft', <LineEnd.LINE_END: '\\n'>]
    """

    def __init__(self, language: Language) -> None:
        self._splitter = language.splitter()
        # The bytes of an incomplete character. An incremental decoder would hold them, but cannot be copied.
        self._bytes = b""
        self._line_begun = False
        self.broken = False  # whether some bytes were not UTF-8
        self._first: bytes | None = None  # the first two bytes of the text

    def events(self, chunks: Iterable[str | bytes]) -> Iterator[Event]:
        """Yield the events of all chunks, each as soon as its chunk has arrived."""
        for chunk in chunks:
            yield from self.feed(chunk)
        yield from self.close()

    def feed(self, chunk: str | bytes) -> list[Event]:
        """Return the words and line ends that this chunk finishes."""
        if isinstance(chunk, bytes):
            return self._read(self._decode(chunk, final=False))
        # Text follows an incomplete character, so its missing bytes will not arrive.
        return self._read(self._decode(b"", final=True) + chunk)

    def close(self) -> list[Event]:
        """Return the remaining events, and reset the reader. A last line without a line feed ends here."""
        events = self._read(self._decode(b"", final=True))
        return events + self._end_line() if self._line_begun else events

    def _decode(self, chunk: bytes, final: bool) -> str:
        if self._first is None and chunk:
            self._first = chunk[:2]
        self._bytes += chunk
        text, used = codecs.utf_8_decode(self._bytes, "replace", final)
        if text.count("\ufffd") > self._bytes[:used].count("\ufffd".encode()):  # more than the text itself has
            self.broken = True
        self._bytes = self._bytes[used:]
        return text

    @property
    def begins_as_utf16(self) -> bool:
        """Whether the text begins with a UTF-16 byte order mark."""
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
    """Yield the words and line ends of one text.

    >>> from stacl.text.languages import language
    >>> list(read_words(["Guten Tag\\n"], language("de")))[:2]
    ['Guten', 'Tag']
    """
    return WordReader(language).events(chunks)
