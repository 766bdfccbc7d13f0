"""A live session: takes source words and returns target words, which are never revised."""

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

KEPT_TRACES = 100  # of the last finished sentences, to limit memory; `on_trace` gets all of them


class Session:
    """One live translation.

    `read(word)` takes the next source word and returns the words that may now be shown. `end()` ends a sentence and
    `close()` ends the source; both return the rest. `feed(chunk)` takes raw text or bytes instead, in chunks of any
    size. A line feed ends a sentence.

    With `segment`, sentences also end at their punctuation, which a stream without line feeds needs. Without it, all
    words until `end()` are one sentence, as in batched decoding.
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
        """Read a source word, and return the target words that may now be shown."""
        return self._follow(self._source.word(word))

    def feed(self, chunk: str | bytes) -> list[Written]:
        """Read text as it arrives. A chunk may end inside a word or inside a character."""
        return self._follow(self._source.feed(chunk))

    def end(self) -> list[Written]:
        """End the sentence, and return its rest. The session continues with the next sentence."""
        return self._follow(self._source.end())

    def close(self) -> list[Written]:
        """End the source, and return the rest of the translation."""
        if self._closed:
            return []
        rest = self._follow(self._source.close())
        self._closed = True
        return rest

    def take(self, item: Item, came: float | None = None) -> Iterator[Written | None]:
        """Take a word or a sentence end from a `SourceText`, which may serve several sessions.

        The iterator computes target words lazily. It must be exhausted before the session is used again. It yields None
        after each step of a beam search, so that the caller can do other work.

        `came` is the time.perf_counter() at which the word arrived, if that was earlier.
        """
        self._check_open()
        return self._finish() if item is SENTENCE_END else self._sentence.read(item, came)

    def change(self, policy: str | Policy) -> list[Written]:
        """Continue under another policy from the next word on, for example for a latency slider."""
        return [written for written in self.turn_to(policy) if written]

    def turn_to(self, policy: str | Policy) -> Iterator[Written | None]:
        """Do the same as `change`, but compute target words lazily, as in `take`."""
        self._check_open()
        wanted = parse_policy(policy).decoding_policy()
        words = self._sentence.change(wanted)
        self.policy = wanted
        return words

    def copy(self) -> Session:
        """Return an independent session with the same progress."""
        twin = copy.copy(self)
        twin._sentence = self._sentence.copy()
        twin._source = copy.deepcopy(self._source)
        twin.traces = self.traces.copy()
        return twin

    @property
    def behind(self) -> int:
        """The number of source words of the current sentence, minus the target words written."""
        return self._sentence.behind

    @property
    def trace(self) -> Trace:
        """The trace of the current sentence, or of the last one if no new sentence has begun."""
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
            raise ValueError("the session is closed; open a new one")


async def interpret(session: Session, chunks: AsyncIterable[str | bytes]) -> AsyncIterator[Written]:
    """Yield the words of a session asynchronously. The model runs in a thread, outside the event loop."""
    async for chunk in chunks:
        for word in await asyncio.to_thread(session.feed, chunk):
            yield word
    for word in await asyncio.to_thread(session.close):
        yield word
