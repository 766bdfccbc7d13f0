"""Which pieces may be written next.

`Rules` decides when to read and which pieces are allowed. Live sessions, batched decoding and the beam all use it, so
they write the same words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stacl.decoding.constraints.base import Constraint
from stacl.decoding.hypothesis import Hypothesis, PrefixState
from stacl.decoding.options import GREEDY, Decoding
from stacl.policies.base import Action, Policy, View
from stacl.text.subwords import BEGIN, END, PAD, UNKNOWN

LONGEST_WORD = 32  # pieces; then the word must end, because words are shown whole
_UNITS_WITHOUT_SOURCE = 200  # maximum target units under a policy that never reads
_NEVER_WRITTEN = [PAD, UNKNOWN, BEGIN]


class Rules:
    """When the policy reads or writes, and which pieces may come next.

    END is masked until the end of the source has been read, unless `early_end` is set or the policy does not read the
    end at all (SPEC 3).
    """

    def __init__(
        self,
        target_ends: np.ndarray,
        policy: Policy,
        decoding: Decoding = GREEDY,
        constraints: Sequence[Constraint] = (),
    ) -> None:
        self.ends_word = target_ends
        self.policy = policy
        self.decoding = decoding
        self._constraints = constraints
        self.end_is_free = decoding.early_end or not policy.reads_all
        # Target units that are allowed in addition to twice the source units read.
        self._extra_units = 20 if policy.reads_all else _UNITS_WITHOUT_SOURCE

    def action(self, read: int, written: int, source_ended: bool, confidence: float | None = None) -> Action:
        """Return the decision of the policy. It must write after the end of the source. It must read when it has
        written far more than it has read.
        """
        if source_ended:
            return Action.WRITE
        if self.policy.reads_all and written >= 50 + 5 * read:
            return Action.READ
        return self.policy.checked_decision(View(read, written, source_ended, confidence))

    def prefers_reading(self, logits: np.ndarray, state: PrefixState) -> bool:
        """Whether the policy reads on instead of writing, given the model's confidence in its next piece (logits [V]).

        END keeps its probability mass while it is masked: if END is likely, the confidence in every other piece is low.
        """
        written = state.committed
        if not self.policy.needs_confidence or state.source_ended or not written.between_units(self.policy.unit):
            return False
        allowed = logits.astype(np.float64)
        highest = allowed.max()
        log_total = highest + np.log(np.exp(allowed - highest).sum())
        self.restrict(allowed, written, state)
        confidence = float(np.exp(allowed.max() - log_total))
        return self.action(state.read, written.units, state.source_ended, confidence) is Action.READ

    def restrict(self, logits: np.ndarray, hypothesis: Hypothesis, state: PrefixState) -> None:
        """Set the pieces that are not allowed to minus infinity in one row of logits [V].

        `hypothesis` is the committed output of `state`, or a branch that continues it.
        """
        logits[_NEVER_WRITTEN] = -np.inf
        may_end = state.source_ended or self.end_is_free
        if not may_end or not (hypothesis.pieces or self.end_is_free):  # the translation of words is not empty
            logits[END] = -np.inf
        if hypothesis.in_word >= LONGEST_WORD:
            logits[~self.ends_word] = -np.inf
        elif may_end and hypothesis.units >= 2 * state.read + self._extra_units:  # stops endless output
            logits[:] = -np.inf
            logits[END] = 0.0
        else:
            for constraint in self._constraints:
                constraint.forbid(logits, hypothesis, state.source)
