"""Tail beam search (STACL, section 3.4): greedy while the source goes on, a beam once its end has been read.

What is committed never changes: the beam only continues it. When the whole source is read before the first word (the
policy `full`, or k beyond the source) the tail is everything, and this is ordinary beam search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stacl.engine import Engine
from stacl.rules import Hypothesis, Rules
from stacl.text import END


@dataclass(frozen=True)
class Tail:
    """Where one sentence's beam begins."""

    committed: Hypothesis
    previous: int  # the piece to feed first
    read: int  # units read, the end counted: all of them
    heard: Sequence[int] | np.ndarray  # source pieces, the end among them


@dataclass
class _Branch:
    """One way to go on."""

    hypothesis: Hypothesis
    previous: int
    score: float = 0.0  # sum of log probabilities of the tail
    steps: int = 0
    greedy: bool = True  # followed the best piece at every step

    def normalised(self) -> float:
        """Mean log probability: without it the shortest tail would win."""
        return self.score / max(1, self.steps)


def finish(engine: Engine, state: Any, tails: Sequence[Tail], rules: Rules, beam: int) -> list[Hypothesis]:
    """The best continuation of each sentence, all searched together. Row i of the state belongs to tail i.

    The greedy continuation is always kept beside the beam, so the result never scores below greedy.
    """
    open_branches = [[_Branch(tail.committed.copy(), tail.previous)] for tail in tails]
    ended: list[list[_Branch]] = [[] for _ in tails]
    while any(open_branches):
        rows = [(i, branch) for i, branches in enumerate(open_branches) for branch in branches]
        previous = np.array([branch.previous for _, branch in rows])
        visible = np.array([len(tails[i].heard) for i, _ in rows])
        state, logits = engine.write(state, previous, visible)
        for row, (i, branch) in enumerate(rows):
            rules.restrict(logits[row], branch.hypothesis, tails[i].read, True, tails[i].heard)
        scores = _log_softmax(logits)
        parents: list[int] = []
        first = 0
        for i, branches in enumerate(open_branches):
            block = scores[first : first + len(branches)]
            chosen = _expand(branches, block, beam) if branches else []
            open_branches[i] = []
            for parent, piece, score, greedy in chosen:
                grown = _grow(branches[parent], piece, score, greedy, tails[i].read, rules)
                if piece == END:
                    ended[i].append(grown)
                elif not _settled(ended[i], beam) or greedy:
                    open_branches[i].append(grown)
                    parents.append(first + parent)
            first += len(branches)
        if parents:
            state = engine.select(state, np.array(parents))
    return [max(branches, key=_Branch.normalised).hypothesis for branches in ended]


def _settled(ended: list[_Branch], beam: int) -> bool:
    return len(ended) >= beam


def _expand(branches: list[_Branch], scores: np.ndarray, beam: int) -> list[tuple[int, int, float, bool]]:
    """The best next pieces over all branches of one sentence: (branch, piece, score, still greedy).

    scores [branches, V]. The greedy branch's own best piece is among them in any case.
    """
    totals = scores + np.array([branch.score for branch in branches])[:, None]
    flat = totals.ravel()
    best = np.argpartition(-flat, min(beam, len(flat) - 1))[:beam]
    best = best[np.argsort(-flat[best], kind="stable")]
    best_pieces = scores.argmax(axis=1)
    picked = [divmod(int(place), scores.shape[1]) for place in best if np.isfinite(flat[place])]
    for number, branch in enumerate(branches):
        own = (number, int(best_pieces[number]))
        if branch.greedy and own not in picked:
            picked.append(own)
    return [
        (
            number,
            piece,
            float(totals[number, piece]),
            branches[number].greedy and piece == best_pieces[number],
        )
        for number, piece in picked
    ]


def _grow(branch: _Branch, piece: int, score: float, greedy: bool, read: int, rules: Rules) -> _Branch:
    hypothesis = branch.hypothesis.copy()
    hypothesis.add(piece, read, rules.ends_word, rules.policy.unit)
    return _Branch(hypothesis, piece, score, branch.steps + 1, greedy)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
