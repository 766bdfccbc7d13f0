"""The one door for text: characters -> words -> sentences, while they arrive.

`stacl translate`, live sessions, `/translate`, the websocket and the SimulEval agent all cut their text here, so
the same text gives the same words and sentences everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stacl.text.languages import Language
from stacl.text.sentences import SENTENCE_END, TRAILING, Item, Segmenter, has_text
from stacl.text.words import LINE_END, Event, LineEnd, WordReader

_LONG_WORD = 8  # bytes


class SourceText:
    """Arriving text -> words and the ends of sentences. One instance may serve several sessions.

    A line feed always ends a sentence; with `segment`, punctuation does too. With `longest`, a sentence without an end
    is ended after that many words, or as many bytes as that many long words have: the cost of a sentence follows from
    its pieces, and a rare character is one piece per byte.

    Where sentences are cut, tokens without a letter or digit between two sentences wait for a word, or for the end of
    the line. A further end mark or a closing quote belongs to the sentence before, which has ended, and is dropped.
    """

    def __init__(self, language: Language, segment: bool, longest: int | None = None) -> None:
        self._language = language
        self.reader = WordReader(language)
        self._segmenter = Segmenter(language) if segment else None
        self._longest = longest
        self._words = self._bytes = 0  # of the sentence so far
        self._strays: list[str] | None = None  # tokens since the last end in this line, until a word comes

    def feed(self, chunk: str | bytes) -> list[Item]:
        """What raw text finishes; a line feed ends a sentence."""
        return self._items(self.reader.feed(chunk))

    def lines(self, chunks: Iterable[str | bytes]) -> Iterator[Item | LineEnd]:
        """The items of a whole stream, each as soon as its chunk has arrived, and after each line its end."""
        for chunk in chunks:
            for event in self.reader.feed(chunk):
                yield from self._with_line_end(event)
        for event in self.reader.close():
            yield from self._with_line_end(event)

    def _with_line_end(self, event: Event) -> list[Item | LineEnd]:
        return [*self._items([event]), LINE_END] if event is LINE_END else [*self._items([event])]

    def word(self, word: str) -> list[Item]:
        """A word that was cut elsewhere; a word that is still open ends before it."""
        open_ = [event for event in self.reader.close() if event is not LINE_END]
        return self._items([*open_, *self._language.taken(word)])

    def _item(self, word: str) -> list[Item]:
        if self._segmenter is None:
            return self._counted([word])
        items: list[Item] = []
        for item in self._segmenter.feed(word):
            if item is SENTENCE_END:
                # Marks that belong to the sentence before make no sentence of their own.
                items += [*loose, item] if (loose := self._loose()) or not self._strays else []
                self._words = self._bytes = 0
                self._strays = []
            elif self._strays is not None and not has_text(item):
                self._strays.append(item)
            else:
                items += self._counted([*self._loose(), item])
        return items

    def _loose(self) -> list[str]:
        """Tokens since the last end that do not belong to the sentence before: dashes, pictures."""
        return [stray for stray in self._strays or () if stray.strip(TRAILING)]

    def _counted(self, words: list[str]) -> list[Item]:
        """The words, and an end after the one that makes the sentence too long."""
        self._strays = None
        items: list[Item] = []
        for word in words:
            items += [word, *(self._end() if self._too_long(word) else [])]
        return items

    def end(self) -> list[Item]:
        """The sentence has ended, and with it the word that was still open."""
        rest = self._items(self.reader.close())
        return rest if rest[-1:] == [SENTENCE_END] else [*rest, *self._end()]

    close = end

    def stop(self) -> list[Item]:
        """The stream was broken off: the sentence ends, and a word that is still open is dropped."""
        return self._end()

    def _too_long(self, word: str) -> bool:
        if self._longest is None:
            return False
        self._words += 1
        self._bytes += len(word.encode())
        return self._words >= self._longest or self._bytes >= self._longest * _LONG_WORD

    def _end(self) -> list[Item]:
        if self._segmenter:
            self._segmenter.end()
        self._words = self._bytes = 0
        loose, self._strays = self._loose(), None
        return [*loose, SENTENCE_END]

    def _items(self, events: Iterable[Event]) -> list[Item]:
        return [item for event in events for item in (self._end() if event is LINE_END else self._item(event))]
