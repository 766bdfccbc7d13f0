"""A live session: source words in, whole target words out, never taken back, for a sentence or for hours."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from stacl.decoding.beam import check
from stacl.live.sentence import Sentence, Written
from stacl.policies.base import Policy, policy
from stacl.text.languages import Language
from stacl.text.sentences import SENTENCE_END, TRAILING, Item, Segmenter, has_text
from stacl.text.words import LINE_END, Event, WordReader
from stacl.traces.trace import Trace

if TYPE_CHECKING:
    from stacl.api import Translator

_LONG_WORD = 8  # bytes
KEPT_TRACES = 100  # of finished sentences; `on_trace` gets every one, so that hours of speech need no memory


class Source:
    """Arriving text -> words and the ends of sentences, cut once for everybody who listens to it.

    With `longest`, a sentence that nobody ends is ended after so many words, or as many bytes as so many long words
    have: what a sentence costs follows from its pieces, and odd characters are a piece a byte.

    Where sentences are cut, what stands between one and the next without a letter or digit waits for a word, or for the
    end of the line. A further end mark or a closing quote belongs to what was said already, and is left out.
    """

    def __init__(self, language: Language, segment: bool, longest: int | None = None) -> None:
        self._language = language
        self._reader = WordReader(language)
        self._segmenter = Segmenter(language) if segment else None
        self._longest = longest
        self._words = self._bytes = 0  # of the sentence so far
        self._strays: list[str] | None = None  # what came since the last end in this line, unless a word has come

    def feed(self, chunk: str | bytes) -> list[Item]:
        """What raw text finishes; a line feed ends a sentence."""
        return self._items(self._reader.feed(chunk))

    def word(self, word: str) -> list[Item]:
        """A word that somebody else has cut; one that was still open ends before it."""
        open_ = [event for event in self._reader.close() if event is not LINE_END]
        return self._items([*open_, *self._language.taken(word)])

    def _item(self, word: str) -> list[Item]:
        if self._segmenter is None:
            return self._counted([word])
        items: list[Item] = []
        for item in self._segmenter.feed(word):
            if item is SENTENCE_END:
                # Of marks that belong to the sentence before there is no sentence to end.
                items += [*loose, item] if (loose := self._loose()) or not self._strays else []
                self._words = self._bytes = 0
                self._strays = []
            elif self._strays is not None and not has_text(item):
                self._strays.append(item)
            else:
                items += self._counted([*self._loose(), item])
        return items

    def _loose(self) -> list[str]:
        """Of what came since the last end, what does not belong to the sentence before: dashes, pictures."""
        return [stray for stray in self._strays or () if stray.strip(TRAILING)]

    def _counted(self, words: list[str]) -> list[Item]:
        """The words, and an end after one that is one too many."""
        self._strays = None
        items: list[Item] = []
        for word in words:
            items += [word, *(self._end() if self._too_long(word) else [])]
        return items

    def end(self) -> list[Item]:
        """The sentence has ended, and with it the word that was still open."""
        rest = self._items(self._reader.close())
        return rest if rest[-1:] == [SENTENCE_END] else [*rest, *self._end()]

    close = end

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


class Session:
    """One listener's stream.

    `read(word)` takes the next source word and returns the words that may now be said; `end()` says that a sentence
    has ended, `close()` that the source has; both return the rest. `feed(chunk)` takes raw text or bytes instead, in
    chunks of any size: a line feed ends a sentence.

    With `segment`, sentences are also cut at their punctuation while they arrive, which a stream without line ends
    needs. Without it one session is one sentence until `end()`, as in batched decoding.
    """

    def __init__(
        self,
        translator: Translator,
        reading: Policy,
        *,
        beam: int = 1,
        ahead: int = 0,
        early_end: bool = False,
        segment: bool = False,
        on_trace: Callable[[Trace], None] | None = None,
    ) -> None:
        check(beam, ahead)
        self.translator = translator
        self.policy = reading.settled()
        self.traces: deque[Trace] = deque(maxlen=KEPT_TRACES)
        self._decoding: dict[str, Any] = {"beam": beam, "ahead": ahead, "early_end": early_end}
        self._on_trace = on_trace
        self._source = Source(translator.source_language, segment)
        self._closed = False
        self._sentence = self._begin(0)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True

    def read(self, word: str) -> list[Written]:
        """Hear one more source word; the target words that may now be said."""
        return self._follow(self._source.word(word))

    def feed(self, chunk: str | bytes) -> list[Written]:
        """Hear text as it arrives; a chunk may end inside a word, or inside a character."""
        return self._follow(self._source.feed(chunk))

    def end(self) -> list[Written]:
        """Hear that the sentence has ended; its rest. The session goes on with the next."""
        return self._follow(self._source.end())

    def close(self) -> list[Written]:
        """Hear that the source has ended; the rest of the translation."""
        if self._closed:
            return []
        said = self._follow(self._source.close())
        self._closed = True
        return said

    def hear(self, item: Item, came: float | None = None) -> Iterator[Written | None]:
        """Hear a word, or the end of a sentence, of a `Source` that others hear too. Each target word is computed when
        it is asked for; the iterator must be run to its end before the session is used again. None says that a step
        of a beam is done, for whoever has other things to do meanwhile.

        The word `came` at this time.perf_counter(), if it had to wait until now.
        """
        self._check_open()
        return self._finish() if item is SENTENCE_END else self._sentence.read(item, came)

    def change(self, reading: str | Policy) -> list[Written]:
        """Go on under another policy, from the next word on: the listener moves the latency slider."""
        return [written for written in self.turn_to(reading) if written]

    def turn_to(self, reading: str | Policy) -> Iterator[Written | None]:
        """`change` with each target word computed when it is asked for, as in `hear`."""
        self._check_open()
        wanted = policy(reading).settled()
        said = self._sentence.change(wanted)
        self.policy = wanted
        return said

    def copy(self) -> Session:
        """Another session that is exactly as far as this one, and goes its own way from here."""
        twin = copy.copy(self)
        twin._sentence = self._sentence.copy()
        twin._source = copy.deepcopy(self._source)
        twin.traces = self.traces.copy()
        return twin

    @property
    def behind(self) -> int:
        """Words of the present sentence that were heard, less those that were said."""
        return self._sentence.behind

    @property
    def trace(self) -> Trace:
        """Of the present sentence, or of the last one if none has begun since."""
        return self.traces[-1] if self.traces and not self._sentence.begun else self._sentence.trace

    def _follow(self, items: list[Item]) -> list[Written]:
        self._check_open()
        return [written for item in items for written in self.hear(item) if written]

    def _finish(self) -> Iterator[Written | None]:
        if not self._sentence.begun:
            return
        yield from self._sentence.close()
        self.traces.append(self._sentence.trace)
        if self._on_trace:
            self._on_trace(self.traces[-1])
        self._sentence = self._begin(self._sentence.number + 1, self._sentence.last_word)

    def _begin(self, number: int, after: str | None = None) -> Sentence:
        return Sentence(self.translator, self.policy, number=number, after=after, **self._decoding)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("this session is closed: what comes now needs a new one")


async def interpret(session: Session, chunks: AsyncIterable[str | bytes]) -> AsyncIterator[Written]:
    """The session as an asynchronous iterator for servers: computing happens outside the event loop."""
    async for chunk in chunks:
        for word in await asyncio.to_thread(session.feed, chunk):
            yield word
    for word in await asyncio.to_thread(session.close):
        yield word
