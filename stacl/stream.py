"""A live session: source words in, whole target words out, never taken back.

The session owns all state of its sentence; the weights belong to everybody.
"""

from __future__ import annotations

import bisect
import copy
import time
from collections import deque
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from stacl.policies.base import Action, Policy
from stacl.search import Hypothesis, Rules
from stacl.text import BEGIN, END
from stacl.trace import Trace

if TYPE_CHECKING:
    from stacl.api import Translator


@dataclass(frozen=True)
class Written:
    """A target word, said for good."""

    text: str
    delay: int  # g(t): source units read when it was decided, the end not counted
    seconds: float  # since the session began


class Session:
    """One sentence, translated while it arrives.

    `read(word)` takes the next source word and returns the words that may now be said; `close()` says that the source
    has ended and returns the rest.
    """

    def __init__(self, translator: Translator, policy: Policy, early_end: bool = False) -> None:
        self.translator = translator
        self.policy = policy.settled()
        self._rules = Rules(translator.target_pieces.ends_word, self.policy, early_end)
        self._state = translator.engine.start()
        self._hypothesis = Hypothesis()
        self._arrived: deque[list[int]] = deque()  # units that came and were not read yet, each as its pieces
        self._previous = BEGIN
        self._word: list[int] = []  # pieces of the word that is not finished yet
        self._read = 0  # units read, the end counted
        self._ended = False  # the end has been read
        self._closed = False
        self._source: list[str] = []
        self._word_ends: list[int] = []  # source pieces up to the end of each word
        self._written: list[Written] = []
        self._read_times: list[float] = []
        self._begin = time.perf_counter()
        self._computing = 0.0

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def read(self, word: str) -> list[Written]:
        """Hear one more source word; the target words that may now be said."""
        if self._closed:
            raise ValueError("this session is closed: a new sentence needs a new session")
        pieces = list(self.translator.source_pieces.encode_word(word))
        self._source.append(word)
        self._word_ends.append(len(pieces) + (self._word_ends[-1] if self._word_ends else 0))
        self._read_times.append(time.perf_counter() - self._begin)
        self._arrived += [pieces] if self.policy.unit == "word" else [[piece] for piece in pieces]
        return self._go_on()

    def close(self) -> list[Written]:
        """Hear that the source has ended; the rest of the translation."""
        if self._closed:
            return []
        self._closed = True
        self._arrived.append([END])
        return self._go_on()

    def copy(self) -> Session:
        """Another session that is exactly as far as this one. Model states are values, so they may be shared."""
        twin = copy.copy(self)
        twin._hypothesis = copy.deepcopy(self._hypothesis)
        for name in ("_arrived", "_word", "_source", "_word_ends", "_written", "_read_times"):
            setattr(twin, name, copy.copy(getattr(self, name)))
        return twin

    @property
    def trace(self) -> Trace:
        """What has happened so far."""
        return Trace(
            source_length=len(self._source),
            delays=tuple(word.delay for word in self._written),
            source=tuple(self._source),
            target=tuple(word.text for word in self._written),
            unit="word",
            read_times=tuple(self._read_times),
            write_times=tuple(word.seconds for word in self._written),
            policy=str(self.policy),
            compute_seconds=self._computing,
        )

    def _go_on(self) -> list[Written]:
        """Read and write until the policy wants a unit that has not come yet."""
        began = time.perf_counter()
        said = len(self._written)
        while not self._hypothesis.ended and self._step():
            pass
        self._computing += time.perf_counter() - began
        return self._written[said:]

    def _step(self) -> bool:
        """One READ or one piece written; False if the next thing to do is to wait for the speaker."""
        hypothesis = self._hypothesis
        if hypothesis.between(self.policy.unit):
            action = self._rules.action(self._read, hypothesis.units, self._ended)
            if action is Action.READ:
                if not self._arrived:
                    return False
                self._take(self._arrived.popleft())
                return True
        self._write()
        return True

    def _take(self, unit: list[int]) -> None:
        self._state = self.translator.engine.read(self._state, np.array([unit]))
        self._read += 1
        self._ended = unit == [END]

    def _write(self) -> None:
        self._state, logits = self.translator.engine.write(self._state, np.array([self._previous]))
        self._rules.restrict(logits[0], self._hypothesis, self._read, self._ended)
        piece = int(logits[0].argmax())
        finished = self._hypothesis.add(piece, self._read, self._rules.ends_word, self.policy.unit)
        self._previous = piece
        if piece != END:
            self._word.append(piece)
        if finished:
            self._say()

    def _say(self) -> None:
        text = self.translator.target_pieces.decode_word(self._word)
        self._word = []
        if text:
            self._written.append(Written(text, self._heard_words(), time.perf_counter() - self._begin))

    def _heard_words(self) -> int:
        """Source words of which something was read: a word that was begun has told something already."""
        heard = self._read - int(self._ended)
        if self.policy.unit == "word" or not heard:
            return heard
        return min(bisect.bisect_left(self._word_ends, heard) + 1, len(self._source))
