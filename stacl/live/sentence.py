"""The state machine that translates one sentence while it arrives. A session uses it."""

from __future__ import annotations

import copy
import time
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stacl.decoding.beam import finish, next_pieces
from stacl.decoding.hypothesis import Hypothesis, PrefixState
from stacl.decoding.options import Decoding
from stacl.live.assembler import WordAssembler
from stacl.policies.base import Action, Policy
from stacl.support.errors import UserError
from stacl.text.subwords import BEGIN, END
from stacl.traces.trace import Trace

if TYPE_CHECKING:
    from stacl.live.translator import Translator


@dataclass(frozen=True)
class Written:
    """A target word. It is never revised."""

    text: str
    delay: int  # g(t): source words of this sentence read when it was decided, or when it could be shown if later
    seconds: float  # since the sentence began
    gap: str = ""  # what stands between it and the word before it: a space, or nothing
    sentence: int = 0  # number of its sentence in the session


class Sentence:
    """Reads and writes as the policy decides. It holds all state of the sentence; the weights are shared.

    `read`, `close` and `change` return an iterator that computes words lazily, so that a server can serve other
    sessions in between. It must be exhausted before the next call. With a beam even one word is slow, so the iterator
    also yields None after each step.
    """

    def __init__(
        self, translator: Translator, policy: Policy, decoding: Decoding, *, number: int = 0, after: str | None = None
    ) -> None:
        self.translator, self.policy, self.number = translator, policy, number
        self._after = after  # the last word of the previous sentence, for the gap before the first word
        self._decoding = decoding
        self._rules = translator.rules(policy, decoding)
        self._state: Any = None  # None until the first word: an idle session needs no memory
        self._hypothesis = Hypothesis()
        self._arrived: deque[list[int]] = deque()  # pieces of each unit that has arrived and is not read yet
        self._previous = BEGIN
        self._tail: Generator[None, None, list[Hypothesis]] | None = None  # beam search for the rest of the sentence
        self._read = 0  # units read, including the end
        self._declined_at = -1  # units read when the policy chose to read on; the next unit must come first
        self._read_pieces: list[int] = []  # source pieces read
        self._ended = False  # the end has been read
        self._source = translator.source_sentence()
        self._words = WordAssembler(self._source, translator.target_pieces)
        self._written: list[Written] = []
        self._read_times: list[float] = []
        self._begin = time.perf_counter()
        self._computing = 0.0

    def read(self, word: str, came: float | None = None) -> Iterator[Written | None]:
        """Read a source word, and yield the words that may be written. `came` is its arrival time (perf_counter)."""
        came = time.perf_counter() if came is None else came
        if not self.begun:
            self._begin = came  # times count from the first word
            self._state = self.translator.engine.start()
        before = len(self._source.pieces)
        self._source.add(word)
        self._read_times.append(came - self._begin)
        if pieces := self._source.pieces[before:]:
            self._arrived += [pieces] if self.policy.unit == "word" else [[piece] for piece in pieces]
        return self._continue()

    def close(self) -> Iterator[Written | None]:
        """End the source, and yield the rest of the translation."""
        self._arrived.append([END])
        yield from self._continue()
        for text, delay in self._words.finish():
            self._write_word(text, delay)
            yield self._written[-1]

    def change(self, policy: Policy) -> Iterator[Written | None]:
        """Continue under another policy, and yield the words that it allows at once. Written words stay."""
        if self.begun and policy.unit != self.policy.unit:
            raise UserError(
                f"the unit cannot change within a sentence: it is {self.policy.unit}, not {policy.unit} as in {policy}"
            )
        self.policy = policy
        self._rules = self.translator.rules(policy, self._decoding)
        self._declined_at = -1
        return self._continue()

    def copy(self) -> Sentence:
        """Return a copy with the same progress. Engine states are immutable, so they are shared."""
        twin = copy.copy(self)
        twin._hypothesis, twin._source = self._hypothesis.copy(), self._source.copy()
        twin._words = self._words.copy(twin._source)
        for name in ("_arrived", "_read_pieces", "_written", "_read_times"):
            setattr(twin, name, copy.copy(getattr(self, name)))
        return twin

    @property
    def begun(self) -> bool:
        return bool(self._source.words)

    @property
    def behind(self) -> int:
        """The number of source words that arrived, minus the target words written."""
        return len(self._source.words) - len(self._written)

    @property
    def last_word(self) -> str | None:
        """The last word written, in this sentence or in the previous one."""
        return self._written[-1].text if self._written else self._after

    @property
    def trace(self) -> Trace:
        """The words, delays and times so far."""
        return Trace(
            source_length=len(self._source.words),
            delays=tuple(word.delay for word in self._written),
            source=tuple(self._source.words),
            target=tuple(word.text for word in self._written),
            unit="word",
            read_times=tuple(self._read_times),
            write_times=tuple(word.seconds for word in self._written),
            policy=str(self.policy),
            compute_seconds=self._computing,
        )

    def _continue(self) -> Iterator[Written | None]:
        """Read and write until the policy needs a unit that has not arrived yet."""
        given, busy = len(self._written), self._source.translatable
        while busy:
            began = time.perf_counter()
            busy = not self._hypothesis.ended and self._step()
            self._computing += time.perf_counter() - began
            while given < len(self._written):
                given += 1
                yield self._written[given - 1]
            if self._decoding.beam > 1:
                yield None

    def _step(self) -> bool:
        """Read one unit or write one piece. Return False if the next unit has not arrived yet."""
        hypothesis = self._hypothesis
        if hypothesis.between_units(self.policy.unit):
            action = self._rules.action(self._read, hypothesis.units, self._ended)
            if action is Action.READ or self._declined_at == self._read:
                if not self._arrived:
                    return False
                self._read_unit(self._arrived.popleft())
                return True
        if self._ended and self._decoding.beam > 1:
            self._write_tail()
        else:
            self._write_piece()
        return True

    def _read_unit(self, unit: list[int]) -> None:
        self._state = self.translator.engine.read(self._state, np.array([unit]))
        self._read += 1
        self._read_pieces += unit
        self._ended = unit == [END]

    def _write_piece(self) -> None:
        engine, prefix = self.translator.engine, self._prefix()
        state, logits = engine.write(self._state, np.array([self._previous]))
        if self._rules.prefers_reading(logits[0], prefix):
            self._declined_at = self._read
            return
        self._state = state
        piece = next_pieces(engine, self._state, logits, [prefix], self._rules)[0]
        self._hypothesis.add(piece, self._read, self._rules.ends_word, self.policy.unit)
        self._previous = piece
        self._show(piece)

    def _write_tail(self) -> None:
        """Search the rest with a beam, one piece per call. The source is complete, so this adds no delay."""
        committed = len(self._hypothesis.pieces)
        self._tail = self._tail or finish(self.translator.engine, self._state, [self._prefix()], self._rules)
        try:
            next(self._tail)
            return
        except StopIteration as search:
            [self._hypothesis], self._tail = search.value, None
        for piece in [*self._hypothesis.pieces[committed:], END]:
            self._show(piece)

    def _prefix(self) -> PrefixState:
        return PrefixState(self._hypothesis, self._previous, self._read, self._read_pieces, self._ended)

    def _show(self, piece: int) -> None:
        for text, delay in self._words.add(piece, self._read, self.policy.unit):
            self._write_word(text, delay)

    def _write_word(self, text: str, delay: int) -> None:
        gap = self.translator.target_language.gap(self.last_word, text)
        self._written.append(Written(text, delay, time.perf_counter() - self._begin, gap, self.number))
