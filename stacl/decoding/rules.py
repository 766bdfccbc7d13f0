"""What may be written next.

`Rules` is the one place that says when to read and which pieces are allowed; the live session, batched decoding and
the beam all ask it, so they write the same words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stacl.decoding.constraints.base import Constraint
from stacl.decoding.hypothesis import Hypothesis, PrefixState
from stacl.decoding.options import GREEDY, Decoding
from stacl.policies.base import Action, Policy, View
from stacl.text.subwords import BEGIN, END, PAD, UNKNOWN

LONGEST_WORD = 32  # pieces; a word that has not ended by then must end: a listener cannot wait for an endless word
_UNITS_WITHOUT_SOURCE = 200  # written at most under a policy that never reads
_NEVER_WRITTEN = [PAD, UNKNOWN, BEGIN]


class Rules:
    """When the policy reads or writes, and which pieces may come next.

    An early end is not allowed to end the output: END is masked until the end of the source has been read, unless
    `early_end` is set or the policy does not read the end at all (SPEC 3).
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
        # Target units that are enough where nothing tells how long the source is.
        self._enough = 20 if policy.reads_all else _UNITS_WITHOUT_SOURCE

    def action(self, read: int, written: int, source_ended: bool, confidence: float | None = None) -> Action:
        """What the policy decides. A policy that would write for ever without reading is made to read, and none reads
        after the end.
        """
        if source_ended:
            return Action.WRITE
        if self.policy.reads_all and written >= 50 + 5 * read:
            return Action.READ
        return self.policy.checked_decision(View(read, written, source_ended, confidence))

    def prefers_reading(self, logits: np.ndarray, state: PrefixState) -> bool:
        """Whether the policy, given the confidence of the model in its next piece [V], reads on instead of writing.

        END keeps its probability mass while it is masked: a model that wants to end is not confident of anything else.
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
        """Set what is not allowed in one row of logits [V] to minus infinity.

        `hypothesis` is what `state` has committed, or a branch that continues it.
        """
        logits[_NEVER_WRITTEN] = -np.inf
        may_end = state.source_ended or self.end_is_free
        if not may_end or not (hypothesis.pieces or self.end_is_free):  # a source with words has some translation
            logits[END] = -np.inf
        if hypothesis.in_word >= LONGEST_WORD:
            logits[~self.ends_word] = -np.inf
        elif may_end and hypothesis.units >= 2 * state.read + self._enough:  # ends a loop
            logits[:] = -np.inf
            logits[END] = 0.0
        else:
            for constraint in self._constraints:
                constraint.forbid(logits, hypothesis, state.source)
