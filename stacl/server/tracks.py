"""One source text and its translations with several policies, as a stream of events in small steps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING

from stacl.live.sentence import Written
from stacl.live.session import Session
from stacl.policies.base import Policy
from stacl.server.aligner import Aligner, Finished, without_alignment
from stacl.server.events import Event, segment_members
from stacl.server.protocol import Close, Command, End, PolicyChange, Text
from stacl.text.sentences import SENTENCE_END, Item
from stacl.text.source import SourceText
from stacl.traces.trace import Trace

if TYPE_CHECKING:
    from stacl.live.translator import Translator

_SLICE = 64  # characters cut into words in one step
_SURROGATES = re.compile("[\ud800-\udfff]")


class Pause(Enum):
    """A step without an event."""

    REST = "the step produced no event"
    WAIT = "alignments are not finished yet"  # only before `closed`


Step = Event | Pause


def slices(text: str) -> Iterator[str]:
    return (text[start : start + _SLICE] for start in range(0, len(text), _SLICE))


class Tracks:
    """`run` yields the events of a command. Run each generator to its end before the next command."""

    def __init__(
        self,
        translator: Translator,
        policies: Sequence[Policy],
        *,
        segment: bool,
        longest: int,
        aligner: Aligner | None = None,
    ) -> None:
        self._source = SourceText(translator.source_language, segment, longest)
        self._language = translator.source_language
        self._sessions: list[Session] = [translator.stream(policy) for policy in policies]
        self.policies = [str(session.policy) for session in self._sessions]  # as they are now
        self._aligner = aligner
        self._half = ""  # the first half of a surrogate pair that the client has split
        self._segment = 0
        self._begin()

    def _begin(self) -> None:
        self._index, self._previous = 0, ""
        self._written = [0] * len(self._sessions)

    def run(self, command: Command, arrived: float) -> Iterator[Step]:
        match command:
            case Text(text):
                yield from self._feed_text(text, arrived)
            case End():
                yield from self._feed_text("\n", arrived)
            case PolicyChange(track, policy):
                yield from self._change(track, policy, arrived)
            case Close():
                yield from self._close(arrived)

    def delivered(self) -> None:
        """Called when the events of all steps so far were delivered. Their alignments may follow."""
        if self._aligner:
            self._aligner.words_delivered()

    def _feed_text(self, text: str, arrived: float) -> Iterator[Step]:
        for part in slices(self._whole(text)):
            for item in self._source.feed(part):
                yield from self._feed(item, arrived)
            yield Pause.REST

    def _whole(self, text: str) -> str:
        """Join surrogate pairs that the client has split between two messages."""
        text, self._half = self._half + text, ""
        if not _SURROGATES.search(text):
            return text
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _change(self, track: int, policy: Policy, arrived: float) -> Iterator[Step]:
        words = self._sessions[track].turn_to(policy)
        self.policies[track] = str(policy)
        yield Event.of("policy", {"track": track, "policy": str(policy)})
        yield from self._words(track, words, arrived)

    def _close(self, arrived: float) -> Iterator[Step]:
        half, self._half = self._half, ""
        for item in self._source.feed(half) + self._source.close():
            yield from self._feed(item, arrived)
        while self._aligner and self._aligner.pending:
            yield Pause.WAIT
        yield Event.of("closed", {})

    def _feed(self, item: Item, arrived: float) -> Iterator[Step]:
        if item is SENTENCE_END:
            yield from self._end(arrived)
            return
        self._index += 1
        place = {"segment": self._segment, "index": self._index}
        yield Event.of("heard", place | {"text": item, "gap": self._language.gap(self._previous, item)})
        self._previous = item
        for track, session in enumerate(self._sessions):
            yield from self._words(track, session.take(item, arrived), arrived)
            yield Pause.REST  # one word may have a thousand pieces: let other sessions run

    def _end(self, arrived: float) -> Iterator[Step]:
        if not self._index:
            return
        for track, session in enumerate(self._sessions):
            yield from self._words(track, session.take(SENTENCE_END), arrived)
            yield self._complete(track, session.traces.pop())
        self._segment += 1
        self._begin()

    def _complete(self, track: int, trace: Trace) -> Step:
        place = {"track": track, "segment": self._segment}
        if self._aligner is None:
            return Event.of("segment", place | segment_members(trace))
        finished = Finished(place, trace)
        if self._aligner.busy:  # words must not wait for alignments, so this sentence gets none
            return without_alignment(finished)
        self._aligner.add(finished)
        return Pause.REST

    def _words(self, track: int, words: Iterator[Written | None], arrived: float) -> Iterator[Step]:
        for word in words:
            if word is None:
                yield Pause.REST
                continue
            self._written[track] += 1
            members = {
                "track": track,
                "segment": self._segment,
                "index": self._written[track],
                "text": word.text,
                "gap": word.gap if self._written[track] > 1 else "",  # the first word of a sentence has no gap
                "delay": word.delay,
                "seconds": round(word.seconds, 4),
            }
            yield Event.of("word", members, arrived)
