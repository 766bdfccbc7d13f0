"""One sentence, translated while it arrives: the state machine below a session."""

from __future__ import annotations

import bisect
import copy
import time
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stacl.decoding.beam import finishing, next_pieces
from stacl.decoding.rules import Hypothesis, Start
from stacl.policies.base import Action, Policy
from stacl.support.errors import UserError
from stacl.text.subwords import BEGIN, END
from stacl.traces.trace import Trace

if TYPE_CHECKING:
    from stacl.api import Translator


@dataclass(frozen=True)
class Written:
    """A target word, said for good."""

    text: str
    delay: int  # g(t): source words of this sentence read when it was decided, or when it could be said if later
    seconds: float  # since the sentence began
    gap: str = ""  # what stands between it and the word before it: a space, or nothing
    sentence: int = 0  # number of its sentence in the session


class Sentence:
    """Reads and writes as the policy decides. All state of the sentence is here; the weights belong to everybody.

    `read`, `close` and `change` return an iterator that computes each word when it is asked for, so that whoever
    serves many can turn to another in between; it must be run to its end before the next call. With a beam even a
    word takes long: then there is a None after each step.
    """

    def __init__(
        self,
        translator: Translator,
        policy: Policy,
        *,
        beam: int = 1,
        ahead: int = 0,
        early_end: bool = False,
        number: int = 0,
        after: str | None = None,
    ) -> None:
        self.translator, self.policy, self.number = translator, policy, number
        self._after = after  # the last word of the sentence before, which the first one is set apart from
        self._beam, self._ahead, self._early_end = beam, ahead, early_end
        self._rules = translator.rules(policy, early_end)
        self._state: Any = None  # from the first word on: a silent listener needs no memory
        self._hypothesis = Hypothesis()
        self._arrived: deque[list[int]] = deque()  # units that came and were not read yet, each as its pieces
        self._previous = BEGIN
        self._tail: Generator[None, None, list[Hypothesis]] | None = None  # the search for all that is left
        self._word: list[int] = []  # pieces of the word that is not finished yet
        self._read = 0  # units read, the end counted
        self._hesitated = -1  # units read when the model was not sure enough to go on: not asked again before the next
        self._heard: list[int] = []  # source pieces read
        self._ended = False  # the end has been read
        self._source = translator.listen()
        self._word_ends: list[int] = []  # source pieces up to the end of each word that the model gets
        self._written: list[Written] = []
        self._read_times: list[float] = []
        self._begin = time.perf_counter()
        self._computing = 0.0

    def read(self, word: str, came: float | None = None) -> Iterator[Written | None]:
        """Hear one more source word; the target words that may now be said. It `came` now, or then (perf_counter)."""
        came = time.perf_counter() if came is None else came
        if not self.begun:
            self._begin = came  # the clock runs from the first word, not from the silence before it
            self._state = self.translator.engine.start()
        given = self._source.add(word)
        self._read_times.append(came - self._begin)
        if given:
            pieces = list(self.translator.source_pieces.encode_word(given))
            self._word_ends.append(len(pieces) + (self._word_ends[-1] if self._word_ends else 0))
            self._arrived += [pieces] if self.policy.unit == "word" else [[piece] for piece in pieces]
        return self._go_on()

    def close(self) -> Iterator[Written | None]:
        """Hear that the source has ended; the rest of the translation."""
        self._arrived.append([END])
        yield from self._go_on()
        for word in self._source.rest(self._written[-1].text if self._written else ""):
            self._say(word, len(self._source.words))
            yield self._written[-1]

    def change(self, policy: Policy) -> Iterator[Written | None]:
        """Go on under another policy; what was said stays. What the new one allows at once is returned."""
        if self.begun and policy.unit != self.policy.unit:
            raise UserError(f"within a sentence the unit stays {self.policy.unit}; {policy} counts in {policy.unit}")
        self.policy = policy
        self._rules = self.translator.rules(policy, self._early_end)
        self._hesitated = -1
        return self._go_on()

    def copy(self) -> Sentence:
        """Another one that is exactly as far. Engine states are values, so they may be shared."""
        twin = copy.copy(self)
        twin._hypothesis, twin._source = self._hypothesis.copy(), self._source.copy()
        for name in ("_arrived", "_word", "_heard", "_word_ends", "_written", "_read_times"):
            setattr(twin, name, copy.copy(getattr(self, name)))
        return twin

    @property
    def begun(self) -> bool:
        return bool(self._source.words)

    @property
    def behind(self) -> int:
        """Source words heard, less target words said."""
        return len(self._source.words) - len(self._written)

    @property
    def last_word(self) -> str | None:
        """That was said, here or before."""
        return self._written[-1].text if self._written else self._after

    @property
    def trace(self) -> Trace:
        """What has happened so far."""
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

    def _go_on(self) -> Iterator[Written | None]:
        """Read and write until the policy wants a unit that has not come yet."""
        said, busy = len(self._written), self._source.translatable
        while busy:
            began = time.perf_counter()
            busy = not self._hypothesis.ended and self._step()
            self._computing += time.perf_counter() - began
            while said < len(self._written):
                said += 1
                yield self._written[said - 1]
            if self._beam > 1:
                yield None

    def _step(self) -> bool:
        """One READ or one piece written; False if the next thing to do is to wait for the speaker."""
        hypothesis = self._hypothesis
        if hypothesis.between(self.policy.unit):
            action = self._rules.action(self._read, hypothesis.units, self._ended)
            if action is Action.READ or self._hesitated == self._read:
                if not self._arrived:
                    return False
                self._take(self._arrived.popleft())
                return True
        if self._ended and self._beam > 1:
            self._write_tail()
        else:
            self._write()
        return True

    def _take(self, unit: list[int]) -> None:
        self._state = self.translator.engine.read(self._state, np.array([unit]))
        self._read += 1
        self._heard += unit
        self._ended = unit == [END]

    def _write(self) -> None:
        engine, start = self.translator.engine, self._start()
        state, logits = engine.write(self._state, np.array([self._previous]))
        if self._rules.hesitates(logits[0], start):
            self._hesitated = self._read
            return
        self._state = state
        piece = next_pieces(engine, self._state, logits, [start], self._rules, self._beam, self._ahead)[0]
        finished = self._hypothesis.add(piece, self._read, self._rules.ends_word, self.policy.unit)
        self._previous = piece
        self._show(piece, finished)

    def _write_tail(self) -> None:
        """All that is left, by beam search, a piece at a time: the source is complete, so nobody waits for it."""
        engine, committed = self.translator.engine, len(self._hypothesis.pieces)
        self._tail = self._tail or finishing(engine, self._state, [self._start()], self._rules, self._beam)
        try:
            next(self._tail)
            return
        except StopIteration as search:
            [self._hypothesis], self._tail = search.value, None
        for piece in self._hypothesis.pieces[committed:]:
            self._show(piece, bool(self._rules.ends_word[piece]))
        self._show(END, bool(self._word))

    def _start(self) -> Start:
        return Start(self._hypothesis, self._previous, self._read, self._heard, self._ended)

    def _show(self, piece: int, finishes_word: bool) -> None:
        if piece != END:
            self._word.append(piece)
        if not finishes_word:
            return
        text = self.translator.target_pieces.decode_word(self._word)
        self._word = []
        if text:
            delay = self._source.delay(self._words_read(), self._ended)
            for word in (*self._source.due(delay, len(self._written) + 1), text):
                self._say(word, delay)

    def _say(self, text: str, delay: int) -> None:
        gap = self.translator.target_language.gap(self.last_word, text)
        self._written.append(Written(text, delay, time.perf_counter() - self._begin, gap, self.number))

    def _words_read(self) -> int:
        """Words that the model got something of: a word that was begun has told something already."""
        read = self._read - int(self._ended)
        if self.policy.unit == "word" or not read:
            return read
        return min(bisect.bisect_left(self._word_ends, read) + 1, len(self._word_ends))
