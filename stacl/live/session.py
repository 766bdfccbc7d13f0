"""A live session: source words in, whole target words out, never revised, for a sentence or for hours."""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from stacl.decoding.options import Decoding
from stacl.live.sentence import Sentence, Written
from stacl.policies.base import Policy
from stacl.policies.base import policy as parse_policy
from stacl.text.sentences import SENTENCE_END, Item
from stacl.text.source import SourceText
from stacl.traces.trace import Trace

if TYPE_CHECKING:
    from stacl.live.translator import Translator

KEPT_TRACES = 100  # of finished sentences; `on_trace` gets every one, so that hours of speech need no memory


class Session:
    """One live translation.

    `read(word)` takes the next source word and returns the words that may now be shown; `end()` ends a sentence,
    `close()` the source; both return the rest. `feed(chunk)` takes raw text or bytes instead, in
    chunks of any size: a line feed ends a sentence.

    With `segment`, sentences are also cut at their punctuation while they arrive, which a stream without line ends
    needs. Without it one session is one sentence until `end()`, as in batched decoding.
    """

    def __init__(
        self,
        translator: Translator,
        policy: Policy,
        decoding: Decoding,
        *,
        segment: bool = False,
        on_trace: Callable[[Trace], None] | None = None,
    ) -> None:
        self.translator = translator
        self.policy = policy.decoding_policy()
        self.decoding = decoding
        self.traces: deque[Trace] = deque(maxlen=KEPT_TRACES)
        self._on_trace = on_trace
        self._source = SourceText(translator.source_language, segment)
        self._closed = False
        self._sentence = self._begin(0)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True

    def read(self, word: str) -> list[Written]:
        """Read one more source word; the target words that may now be shown."""
        return self._follow(self._source.word(word))

    def feed(self, chunk: str | bytes) -> list[Written]:
        """Read text as it arrives; a chunk may end inside a word, or inside a character."""
        return self._follow(self._source.feed(chunk))

    def end(self) -> list[Written]:
        """End the sentence; its rest. The session goes on with the next."""
        return self._follow(self._source.end())

    def close(self) -> list[Written]:
        """End the source; the rest of the translation."""
        if self._closed:
            return []
        rest = self._follow(self._source.close())
        self._closed = True
        return rest

    def take(self, item: Item, came: float | None = None) -> Iterator[Written | None]:
        """Take a word, or the end of a sentence, of a `SourceText` that serves several sessions. Each target word is
        computed when it is asked for; the iterator must be run to its end before the session is used again. None marks
        a finished step of a beam search, so that the caller can do other work in between.

        The word `came` at this time.perf_counter(), if it had to wait until now.
        """
        self._check_open()
        return self._finish() if item is SENTENCE_END else self._sentence.read(item, came)

    def change(self, policy: str | Policy) -> list[Written]:
        """Go on under another policy, from the next word on (a latency slider)."""
        return [written for written in self.turn_to(policy) if written]

    def turn_to(self, policy: str | Policy) -> Iterator[Written | None]:
        """`change` with each target word computed when it is asked for, as in `take`."""
        self._check_open()
        wanted = parse_policy(policy).decoding_policy()
        words = self._sentence.change(wanted)
        self.policy = wanted
        return words

    def copy(self) -> Session:
        """Another session that is exactly as far as this one, and goes its own way from here."""
        twin = copy.copy(self)
        twin._sentence = self._sentence.copy()
        twin._source = copy.deepcopy(self._source)
        twin.traces = self.traces.copy()
        return twin

    @property
    def behind(self) -> int:
        """Source words of the present sentence, less target words written."""
        return self._sentence.behind

    @property
    def trace(self) -> Trace:
        """Of the present sentence, or of the last one if none has begun since."""
        return self.traces[-1] if self.traces and not self._sentence.begun else self._sentence.trace

    def _follow(self, items: list[Item]) -> list[Written]:
        self._check_open()
        return [written for item in items for written in self.take(item) if written]

    def _finish(self) -> Iterator[Written | None]:
        if not self._sentence.begun:
            return
        yield from self._sentence.close()
        self.traces.append(self._sentence.trace)
        if self._on_trace:
            self._on_trace(self.traces[-1])
        self._sentence = self._begin(self._sentence.number + 1, self._sentence.last_word)

    def _begin(self, number: int, after: str | None = None) -> Sentence:
        return Sentence(self.translator, self.policy, self.decoding, number=number, after=after)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the session is closed: open a new one")


async def interpret(session: Session, chunks: AsyncIterable[str | bytes]) -> AsyncIterator[Written]:
    """The session as an asynchronous iterator for servers: computing happens outside the event loop."""
    async for chunk in chunks:
        for word in await asyncio.to_thread(session.feed, chunk):
            yield word
    for word in await asyncio.to_thread(session.close):
        yield word
