"""The translation of a whole text for `/translate`, as a scheduler job."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stacl.decoding.options import Decoding
from stacl.policies.base import Policy
from stacl.server.events import segment_members
from stacl.server.tracks import slices
from stacl.text.source import SourceText
from stacl.traces.trace import Trace

if TYPE_CHECKING:
    from stacl.live.translator import Translator


class Translation:
    """`await result` returns the fields of the answer. Call `cancel` when it is no longer needed."""

    def __init__(
        self,
        translator: Translator,
        policy: Policy,
        text: str,
        *,
        decoding: Decoding,
        segment: bool,
        longest: int,
    ) -> None:
        self._language = translator.target_language
        self._source = SourceText(translator.source_language, segment, longest)
        self._session = translator.stream(policy, decoding=decoding, on_trace=self._keep)
        self._segments: list[dict[str, Any]] = []
        self._lines: list[str] = []
        self._cancelled = False
        self._steps = self._translate(text)
        self._loop = asyncio.get_running_loop()
        self.result: asyncio.Future[dict[str, Any]] = self._loop.create_future()

    def cancel(self) -> None:
        self._cancelled = True

    def turn(self, until: float) -> bool:
        try:
            while not self._cancelled and time.perf_counter() < until:
                next(self._steps)
            return not self._cancelled
        except StopIteration:
            found = {"translation": "\n".join(self._lines), "segments": self._segments}
            self._loop.call_soon_threadsafe(self._settle, found)
        except Exception as error:
            self._loop.call_soon_threadsafe(self._settle, error)
        return False

    def _translate(self, text: str) -> Iterator[None]:
        """Line by line, as `stacl translate` does. A step is a word or one piece of a beam search."""
        for line in text.split("\n"):
            words: list[str] = []
            for part in slices(line + "\n"):
                for item in self._source.feed(part):
                    for word in self._session.take(item):
                        if word:
                            words.append(word.text)
                        yield
                yield
            self._lines.append(self._language.join(words))

    def _keep(self, trace: Trace) -> None:
        # The whole text arrived at once, so read and write times have no meaning.
        members = segment_members(replace(trace, read_times=(), write_times=(), compute_seconds=0.0))
        del members["read_times"], members["write_times"]
        self._segments.append(members)

    def _settle(self, outcome: dict[str, Any] | Exception) -> None:
        if self.result.done():
            return
        if isinstance(outcome, Exception):
            self.result.set_exception(outcome)
        else:
            self.result.set_result(outcome)
