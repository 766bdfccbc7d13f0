"""Splits arriving text into words and sentences.

`stacl translate`, live sessions, `/translate`, the websocket and the SimulEval agent all use this module, so the same
text gives the same words and sentences everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stacl.text.languages import Language
from stacl.text.sentences import SENTENCE_END, TRAILING, Item, Segmenter, has_text
from stacl.text.words import LINE_END, Event, LineEnd, WordReader

_LONG_WORD = 8  # bytes


class SourceText:
    """Takes arriving text and returns words and sentence ends. One instance may serve several sessions.

    A line feed always ends a sentence. With `segment`, punctuation does too. With `longest`, a sentence ends after that
    many words at the latest, or after `longest * 8` bytes: the cost of a sentence depends on its pieces, and a rare
    character is one piece per byte.

    With `segment`, tokens between two sentences without a letter or digit wait for a word or for the end of the line. A
    second end mark or a closing quote belongs to the previous sentence, which has ended, and is dropped.
    """

    def __init__(self, language: Language, segment: bool, longest: int | None = None) -> None:
        self._language = language
        self.reader = WordReader(language)
        self._segmenter = Segmenter(language) if segment else None
        self._longest = longest
        self._words = self._bytes = 0  # of the sentence so far
        self._strays: list[str] | None = None  # tokens since the last sentence end of this line, until a word arrives

    def feed(self, chunk: str | bytes) -> list[Item]:
        """Return the words and sentence ends that this text finishes. A line feed ends a sentence."""
        return self._items(self.reader.feed(chunk))

    def lines(self, chunks: Iterable[str | bytes]) -> Iterator[Item | LineEnd]:
        """Yield the items of a whole stream as soon as their chunks arrive, with a LINE_END after each line."""
        for chunk in chunks:
            for event in self.reader.feed(chunk):
                yield from self._with_line_end(event)
        for event in self.reader.close():
            yield from self._with_line_end(event)

    def _with_line_end(self, event: Event) -> list[Item | LineEnd]:
        return [*self._items([event]), LINE_END] if event is LINE_END else [*self._items([event])]

    def word(self, word: str) -> list[Item]:
        """Take a word that the caller has split. It ends a word that is still open."""
        open_ = [event for event in self.reader.close() if event is not LINE_END]
        return self._items([*open_, *self._language.taken(word)])

    def _item(self, word: str) -> list[Item]:
        if self._segmenter is None:
            return self._counted([word])
        items: list[Item] = []
        for item in self._segmenter.feed(word):
            if item is SENTENCE_END:
                # Marks that belong to the previous sentence do not form a sentence.
                items += [*kept, item] if (kept := self._kept_strays()) or not self._strays else []
                self._words = self._bytes = 0
                self._strays = []
            elif self._strays is not None and not has_text(item):
                self._strays.append(item)
            else:
                items += self._counted([*self._kept_strays(), item])
        return items

    def _kept_strays(self) -> list[str]:
        """Return the tokens since the last end that do not belong to the previous sentence: dashes, pictographs."""
        return [stray for stray in self._strays or () if stray.strip(TRAILING)]

    def _counted(self, words: list[str]) -> list[Item]:
        """Return the words, and a sentence end after the word that reaches the maximum length."""
        self._strays = None
        items: list[Item] = []
        for word in words:
            items += [word, *(self._end() if self._too_long(word) else [])]
        return items

    def end(self) -> list[Item]:
        """End the sentence, and with it the open word."""
        rest = self._items(self.reader.close())
        return rest if rest[-1:] == [SENTENCE_END] else [*rest, *self._end()]

    close = end

    def stop(self) -> list[Item]:
        """End the sentence of an interrupted stream. The open word is dropped."""
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
        kept, self._strays = self._kept_strays(), None
        return [*kept, SENTENCE_END]

    def _items(self, events: Iterable[Event]) -> list[Item]:
        return [item for event in events for item in (self._end() if event is LINE_END else self._item(event))]
