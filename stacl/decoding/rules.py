"""What is written of a sentence, and what may be written next.

`Rules` is the one place that says when to read and which pieces are allowed; the live session, the batched decoding
and the beam all ask it, so they write the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from stacl.decoding.constraints.numbers import Numbers
from stacl.decoding.constraints.repetition import would_repeat
from stacl.policies.base import Action, Policy, View
from stacl.text.subwords import BEGIN, END, PAD, UNKNOWN

LONGEST_WORD = 32  # pieces; a word that has not ended by then must end: no listener waits for an endless word
_UNHEARD_UNITS = 200  # written at most under a policy that never listens
_NEVER_WRITTEN = [PAD, UNKNOWN, BEGIN]


@dataclass
class Hypothesis:
    """What was written of one sentence so far."""

    pieces: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)  # for each piece, the units read when it was decided
    units: int = 0  # finished units
    in_word: int = 0  # pieces of the word that is not finished yet
    ended: bool = False

    def add(self, piece: int, read: int, ends_word: np.ndarray, unit: str) -> bool:
        """Append a piece; True if it finished a word. The end symbol finishes a word that was not."""
        if piece == END:
            self.ended = True
            return self.in_word > 0
        self.pieces.append(piece)
        self.reads.append(read)
        word_ended = bool(ends_word[piece])
        self.in_word = 0 if word_ended else self.in_word + 1
        self.units += 1 if unit == "piece" else int(word_ended)
        return word_ended

    def copy(self) -> Hypothesis:
        return replace(self, pieces=self.pieces.copy(), reads=self.reads.copy())

    def between(self, unit: str) -> bool:
        """Only here a policy decides; in word units all pieces of a word are written with the same view."""
        return unit == "piece" or self.in_word == 0


@dataclass(frozen=True)
class Start:
    """How far one sentence is, where its next piece is decided."""

    committed: Hypothesis
    previous: int  # the piece to feed first
    read: int  # units read, the end counted
    heard: Sequence[int] | np.ndarray  # source pieces, the end among them if it was read
    source_ended: bool


class Rules:
    """When the policy reads or writes, and which pieces may come next.

    An early end is not allowed to end the output: END is masked until the end of the source has been read, unless
    `early_end` is set or the policy does not read the end at all (SPEC 3).
    """

    def __init__(
        self,
        target_ends: np.ndarray,
        policy: Policy,
        early_end: bool = False,
        numbers: Numbers | None = None,
        heard_words: Callable[[Sequence[int]], list[str]] | None = None,
    ) -> None:
        self.ends_word = target_ends
        self.policy = policy
        self._numbers = numbers
        self._heard_words = heard_words
        self.end_is_free = early_end or not policy.reads_all
        # Target units that are enough where nothing tells how long the source is.
        self._enough = 20 if policy.reads_all else _UNHEARD_UNITS

    def action(self, read: int, written: int, source_ended: bool, confidence: float | None = None) -> Action:
        """What the policy decides, but a policy that would talk for ever without listening is made to listen, and none
        listens after the end.
        """
        if source_ended:
            return Action.WRITE
        if self.policy.reads_all and written >= 50 + 5 * read:
            return Action.READ
        return self.policy.decided(View(read, written, source_ended, confidence))

    def hesitates(self, logits: np.ndarray, start: Start) -> bool:
        """Whether the policy, told how sure the model is of its next piece [V], would rather listen on.

        The end counts as something to say that may not be said yet: who has nothing to add is not sure of anything.
        """
        written = start.committed
        if not self.policy.weighs or start.source_ended or not written.between(self.policy.unit):
            return False
        allowed = logits.astype(np.float64)
        likeliest = allowed.max()
        all_of_them = likeliest + np.log(np.exp(allowed - likeliest).sum())
        self.restrict(allowed, written, start.read, start.source_ended, start.heard)
        confidence = float(np.exp(allowed.max() - all_of_them))
        return self.action(start.read, written.units, start.source_ended, confidence) is Action.READ

    def restrict(
        self,
        logits: np.ndarray,
        hypothesis: Hypothesis,
        read: int,
        source_ended: bool,
        heard: Sequence[int] | np.ndarray,
    ) -> None:
        """Set what is not allowed in one row of logits [V] to minus infinity.

        `read` counts units, the end too; `heard` are the source pieces in them.
        """
        logits[_NEVER_WRITTEN] = -np.inf
        may_end = source_ended or self.end_is_free
        if not may_end or not (hypothesis.pieces or self.end_is_free):  # words came in: something is said of them
            logits[END] = -np.inf
        if hypothesis.in_word >= LONGEST_WORD:
            logits[~self.ends_word] = -np.inf
        elif may_end and hypothesis.units >= 2 * read + self._enough:  # a loop stops here
            logits[:] = -np.inf
            logits[END] = 0.0
        else:
            if hypothesis.in_word == 0:
                logits[would_repeat(hypothesis.pieces, self.ends_word, heard, self._heard_words)] = -np.inf
            if self._numbers:
                self._numbers.restrict(logits, hypothesis.pieces, heard)
