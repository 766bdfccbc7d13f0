"""Which piece to write next: what is allowed, and greedy decoding of many sentences at once.

`Rules` is the one place that says when to read and which pieces are allowed; the live session and the batched
decoding below both ask it, so they write the same words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stacl.engine import Engine
from stacl.policies.base import Action, Policy, View
from stacl.text import BEGIN, END, PAD, UNKNOWN, units_of

LONGEST_WORD = 32  # pieces; a word that has not ended by then must end: no listener waits for an endless word
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

    def between(self, unit: str) -> bool:
        """Only here a policy decides; in word units all pieces of a word are written with the same view."""
        return unit == "piece" or self.in_word == 0


class Rules:
    """When the policy reads or writes, and which pieces may come next.

    An early end is not allowed to end the output: END is masked until the end of the source has been read, unless
    `early_end` is set or the policy does not read the end at all (SPEC 3).
    """

    def __init__(self, target_ends: np.ndarray, policy: Policy, early_end: bool = False) -> None:
        self.ends_word = target_ends
        self.policy = policy
        self.end_is_free = early_end or not policy.reads_all

    def action(self, read: int, written: int, source_ended: bool) -> Action:
        """What the policy decides, but a policy that would talk for ever without listening is made to listen."""
        if not source_ended and self.policy.reads_all and written >= 50 + 5 * read:
            return Action.READ
        return self.policy.decide(View(read, written, source_ended))

    def restrict(self, logits: np.ndarray, hypothesis: Hypothesis, read: int, source_ended: bool) -> None:
        """Set what is not allowed in one row of logits [V] to minus infinity. `read` counts units, the end too."""
        logits[_NEVER_WRITTEN] = -np.inf
        may_end = source_ended or self.end_is_free
        if not may_end:
            logits[END] = -np.inf
        if hypothesis.in_word >= LONGEST_WORD:
            logits[~self.ends_word] = -np.inf
        elif may_end and hypothesis.units >= 2 * read + 20:  # a loop stops here
            logits[:] = -np.inf
            logits[END] = 0.0


@dataclass(frozen=True)
class Sources:
    """Padded source pieces of several sentences, the end symbol behind each."""

    pieces: np.ndarray  # [B, S]
    units: list[np.ndarray]  # of each row's real pieces, the end's |x|+1 included
    lengths: list[int]  # |x| of each row in units

    @classmethod
    def of(cls, sentences: Sequence[np.ndarray], ends_word: np.ndarray, unit: str) -> Sources:
        rows = [np.append(sentence, END) for sentence in sentences]
        units = [units_of(sentence, ends_word, unit) for sentence in sentences]
        lengths = [int(of_row[-1]) if len(of_row) else 0 for of_row in units]
        pieces = np.full((len(rows), max(map(len, rows))), PAD, dtype=np.int64)
        for i, row in enumerate(rows):
            pieces[i, : len(row)] = row
        with_end = [np.append(of_row, length + 1) for of_row, length in zip(units, lengths, strict=True)]
        return cls(pieces, with_end, lengths)

    def visible(self, row: int, read: int) -> int:
        """How many pieces of a row belong to its first `read` units."""
        return int(np.searchsorted(self.units[row], read, side="right"))


def decode(engine: Engine, sources: Sources, rules: Rules) -> list[Hypothesis]:
    """Greedy translations of several sentences, decoded together, each reading by the policy."""
    unit = rules.policy.unit
    rows = len(sources.lengths)
    found = [Hypothesis() for _ in range(rows)]
    read = [0] * rows  # units of each row, the end counted
    alive = list(range(rows))
    state = engine.read(engine.start(rows), sources.pieces)
    previous = np.full(rows, BEGIN)
    while alive:
        for row in alive:
            if found[row].between(unit):
                read[row] = _listen(rules, read[row], found[row].units, sources.lengths[row])
        visible = np.array([sources.visible(row, read[row]) for row in alive])
        state, logits = engine.write(state, previous, visible)
        for i, row in enumerate(alive):
            rules.restrict(logits[i], found[row], read[row], read[row] > sources.lengths[row])
        chosen = logits.argmax(-1)
        for row, piece in zip(alive, chosen.tolist(), strict=True):
            found[row].add(piece, read[row], rules.ends_word, unit)
        kept = [i for i, row in enumerate(alive) if not found[row].ended]
        if kept and len(kept) < len(alive):
            state = engine.select(state, np.array(kept))
        alive = [alive[i] for i in kept]
        previous = chosen[kept]
    return found


def _listen(rules: Rules, read: int, written: int, length: int) -> int:
    """Units read, the end counted, when the policy next writes, in a source that is all there."""
    while rules.action(read, written, read > length) is Action.READ:
        read += 1
    return read
