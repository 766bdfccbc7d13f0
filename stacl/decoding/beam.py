"""Beams that never take anything back.

`finish` is tail beam search (STACL, section 3.4): greedy while the source goes on, a beam once its end has been read.
What is committed never changes: the beam only continues it. When the whole source is read before the first word (the
policy `full`, or k beyond the source) the tail is everything, and this is ordinary beam search.

`next_pieces` is speculative beam search (Zheng et al. 2019) for the time before: a beam runs a few pieces ahead of
what may be said, over the source heard so far, and of its best branch one piece is committed, the rest forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stacl.decoding.engine import Engine
from stacl.decoding.rules import Hypothesis, Rules, Start
from stacl.support.errors import UserError
from stacl.support.stepwise import run
from stacl.text.subwords import END

_MOST = 100


def check(beam: int, ahead: int) -> None:
    if beam < 1:
        raise UserError(f"a beam has at least one branch, not {beam}")
    if max(beam, ahead) > _MOST:
        raise UserError(
            f"a beam has at most {_MOST} branches and looks at most as many pieces ahead, not {max(beam, ahead)}"
        )
    if ahead < 0:
        raise UserError(f"one looks 0 or more pieces ahead, not {ahead}")
    if ahead and beam == 1:
        raise UserError("to look ahead takes a beam of 2 or more: one branch alone would change nothing")


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


@dataclass
class _Found:
    """The branches of one sentence."""

    open: list[_Branch]
    ended: list[_Branch]

    def best(self) -> _Branch:
        return max([*self.ended, *self.open], key=_Branch.normalised)


def finish(engine: Engine, state: Any, starts: Sequence[Start], rules: Rules, beam: int) -> list[Hypothesis]:
    """The best continuation of each sentence to its end, all searched together. Row i of the state belongs to start i.

    The greedy continuation is always kept beside the beam, so the result never scores below greedy.
    """
    return run(finishing(engine, state, starts, rules, beam))


def finishing(
    engine: Engine, state: Any, starts: Sequence[Start], rules: Rules, beam: int
) -> Generator[None, None, list[Hypothesis]]:
    """`finish` in steps of one piece: a long sentence takes seconds, and others want their turn."""
    previous = np.array([start.previous for start in starts])
    state, logits = engine.write(state, previous, np.array([len(start.heard) for start in starts]))
    found = yield from _search(engine, state, logits, starts, rules, beam)
    return [one.best().hypothesis for one in found]


def next_pieces(
    engine: Engine, state: Any, logits: np.ndarray, starts: Sequence[Start], rules: Rules, beam: int, ahead: int
) -> list[int]:
    """The next piece of each sentence: the first of the best branch that goes `ahead` pieces beyond it.

    State and logits are those after the previous piece was written; the state is asked only by who looks ahead. The
    branches see the source that was heard and no more, so nothing here peeks.
    """
    if not ahead:
        for row, start in enumerate(starts):
            rules.restrict(logits[row], start.committed, start.read, start.source_ended, start.heard)
        return [int(piece) for piece in logits.argmax(axis=1)]
    found = run(_search(engine, state, logits, starts, rules, beam, 1 + ahead))
    best = [
        one.best().hypothesis.pieces[len(start.committed.pieces) :] for one, start in zip(found, starts, strict=True)
    ]
    return [pieces[0] if pieces else END for pieces in best]


def _search(
    engine: Engine,
    state: Any,
    logits: np.ndarray,
    starts: Sequence[Start],
    rules: Rules,
    beam: int,
    steps: float = math.inf,
) -> Generator[None, None, list[_Found]]:
    """Grow every branch by so many pieces, or until it ends; a step a piece."""
    found = [_Found([_Branch(start.committed.copy(), start.previous)], []) for start in starts]
    rows = [(start, branch) for start, one in zip(starts, found, strict=True) for branch in one.open]
    while True:
        for row, (start, branch) in enumerate(rows):
            rules.restrict(logits[row], branch.hypothesis, start.read, start.source_ended, start.heard)
        parents = _grow_all(found, _log_softmax(logits), starts, rules, beam)
        steps -= 1
        if not parents or steps <= 0:
            return found
        rows = [(start, branch) for start, one in zip(starts, found, strict=True) for branch in one.open]
        previous = np.array([branch.previous for _, branch in rows])
        visible = np.array([len(start.heard) for start, _ in rows])
        yield
        state, logits = engine.write(engine.select(state, np.array(parents)), previous, visible)


def _grow_all(found: list[_Found], scores: np.ndarray, starts: Sequence[Start], rules: Rules, beam: int) -> list[int]:
    """Every branch by one piece. scores [rows, V] of the open branches; the row that each new open branch came from."""
    parents: list[int] = []
    first = 0
    for start, one in zip(starts, found, strict=True):
        branches = one.open
        chosen = _expand(branches, scores[first : first + len(branches)], beam) if branches else []
        one.open = []
        for parent, piece, score, greedy in chosen:
            grown = _grow(branches[parent], piece, score, greedy, start.read, rules)
            if piece == END:
                one.ended.append(grown)
            elif not _settled(one.ended, beam) or greedy:
                one.open.append(grown)
                parents.append(first + parent)
        first += len(branches)
    return parents


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
