"""A live session: source words in, whole target words out, never taken back, for a sentence or for hours."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING

from stacl.errors import UserError
from stacl.policies.base import Policy, policy
from stacl.segment import SENTENCE_END, Segmenter
from stacl.sentence import Sentence, Written
from stacl.trace import Trace
from stacl.words import LINE_END, WordReader

if TYPE_CHECKING:
    from stacl.api import Translator

KEPT_TRACES = 100  # of finished sentences; `on_trace` gets every one, so that hours of speech need no memory


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
        early_end: bool = False,
        segment: bool = False,
        on_trace: Callable[[Trace], None] | None = None,
    ) -> None:
        if beam < 1:
            raise UserError(f"a beam has at least one branch, not {beam}")
        self.translator = translator
        self.policy = reading.settled()
        self.traces: deque[Trace] = deque(maxlen=KEPT_TRACES)
        self._beam, self._early_end, self._on_trace = beam, early_end, on_trace
        self._segmenter = Segmenter(translator.source_language) if segment else None
        self._reader = WordReader(translator.source_language)
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
        self._check_open()
        if not self._segmenter:
            return self._sentence.read(word)
        said: list[Written] = []
        for item in self._segmenter.feed(word):
            said += self._finish() if item is SENTENCE_END else self._sentence.read(item)
        return said

    def feed(self, chunk: str | bytes) -> list[Written]:
        """Hear text as it arrives; a chunk may end inside a word, or inside a character."""
        self._check_open()
        said: list[Written] = []
        for event in self._reader.feed(chunk):
            said += self.end() if event is LINE_END else self.read(event)
        return said

    def end(self) -> list[Written]:
        """Hear that the sentence has ended; its rest. The session goes on with the next."""
        self._check_open()
        if self._segmenter:
            self._segmenter.end()
        return self._finish()

    def close(self) -> list[Written]:
        """Hear that the source has ended; the rest of the translation."""
        if self._closed:
            return []
        said: list[Written] = []
        for event in self._reader.close():
            said += [] if event is LINE_END else self.read(event)
        said += self.end()
        self._closed = True
        return said

    def change(self, reading: str | Policy) -> list[Written]:
        """Go on under another policy, from the next word on: the listener moves the latency slider."""
        self._check_open()
        wanted = policy(reading).settled()
        said = self._sentence.change(wanted)
        self.policy = wanted
        return said

    def copy(self) -> Session:
        """Another session that is exactly as far as this one, and goes its own way from here."""
        twin = copy.copy(self)
        twin._sentence = self._sentence.copy()
        twin._segmenter, twin._reader = copy.deepcopy((self._segmenter, self._reader))
        twin.traces = self.traces.copy()
        return twin

    @property
    def trace(self) -> Trace:
        """Of the present sentence, or of the last one if none has begun since."""
        return self.traces[-1] if self.traces and not self._sentence.begun else self._sentence.trace

    def _finish(self) -> list[Written]:
        if not self._sentence.begun:
            return []
        said = self._sentence.close()
        self.traces.append(self._sentence.trace)
        if self._on_trace:
            self._on_trace(self.traces[-1])
        self._sentence = self._begin(self._sentence.number + 1)
        return said

    def _begin(self, number: int) -> Sentence:
        return Sentence(self.translator, self.policy, beam=self._beam, early_end=self._early_end, number=number)

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
