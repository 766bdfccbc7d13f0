"""Beam search that never revises what was committed.

`finish` is tail beam search (STACL, section 3.4): greedy while the source is open, a beam once its end has been read.
The beam only continues what was committed. If the whole source is read before the first word (policy `full`, or k
larger than the source), this is ordinary beam search.

`next_pieces` is speculative beam search (Zheng et al. 2019) while the source is open. A beam over the source read so
far looks a few pieces ahead. One piece of its best branch is committed, and the rest is dropped.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from stacl.decoding.engine import Engine, State
from stacl.decoding.hypothesis import Hypothesis, PrefixState
from stacl.decoding.rules import Rules
from stacl.support.stepwise import run
from stacl.text.subwords import END


@dataclass
class _Branch:
    """A possible continuation."""

    hypothesis: Hypothesis
    previous: int
    score: float = 0.0  # sum of log probabilities of the tail
    steps: int = 0
    greedy: bool = True  # followed the best piece at every step

    def normalised(self) -> float:
        """Return the mean log probability. With the sum, the shortest tail would win."""
        return self.score / max(1, self.steps)


@dataclass
class _Beam:
    """The branches of one sentence."""

    open: list[_Branch]
    ended: list[_Branch]

    def best(self) -> _Branch:
        return max([*self.ended, *self.open], key=_Branch.normalised)


def finish(
    engine: Engine[State], state: State, prefixes: Sequence[PrefixState], rules: Rules
) -> Generator[None, None, list[Hypothesis]]:
    """Search the best continuation of each sentence to its end. Row i of the state belongs to prefix i.

    It yields after each piece, so that a server can do other work. The greedy continuation is always kept besides the
    beam, so the result never scores below greedy.
    """
    previous = np.array([prefix.previous for prefix in prefixes])
    state, logits = engine.write(state, previous, np.array([len(prefix.source) for prefix in prefixes]))
    found = yield from _search(engine, state, logits, prefixes, rules)
    return [beam.best().hypothesis for beam in found]


def next_pieces(
    engine: Engine[State], state: State, logits: np.ndarray, prefixes: Sequence[PrefixState], rules: Rules
) -> list[int]:
    """Return the next piece of each sentence: the first piece of the best branch of `1 + ahead` pieces.

    State and logits are those after the previous piece was written. The state is used only with a look-ahead. Branches
    see only the source that was read.
    """
    ahead = rules.decoding.ahead
    if not ahead:
        for row, prefix in enumerate(prefixes):
            rules.restrict(logits[row], prefix.committed, prefix)
        return [int(piece) for piece in logits.argmax(axis=1)]
    found = run(_search(engine, state, logits, prefixes, rules, 1 + ahead))
    best = [
        beam.best().hypothesis.pieces[len(prefix.committed.pieces) :]
        for beam, prefix in zip(found, prefixes, strict=True)
    ]
    return [pieces[0] if pieces else END for pieces in best]


def _search(
    engine: Engine[State],
    state: State,
    logits: np.ndarray,
    prefixes: Sequence[PrefixState],
    rules: Rules,
    steps: float = math.inf,
) -> Generator[None, None, list[_Beam]]:
    """Extend every branch by `steps` pieces, or until it ends. It yields after each piece."""
    found = [_Beam([_Branch(prefix.committed.copy(), prefix.previous)], []) for prefix in prefixes]
    rows = [(prefix, branch) for prefix, beam in zip(prefixes, found, strict=True) for branch in beam.open]
    while True:
        for row, (prefix, branch) in enumerate(rows):
            rules.restrict(logits[row], branch.hypothesis, prefix)
        parents = _grow_all(found, _log_softmax(logits), prefixes, rules)
        steps -= 1
        if not parents or steps <= 0:
            return found
        rows = [(prefix, branch) for prefix, beam in zip(prefixes, found, strict=True) for branch in beam.open]
        previous = np.array([branch.previous for _, branch in rows])
        visible = np.array([len(prefix.source) for prefix, _ in rows])
        yield
        state, logits = engine.write(engine.select(state, np.array(parents)), previous, visible)


def _grow_all(found: list[_Beam], scores: np.ndarray, prefixes: Sequence[PrefixState], rules: Rules) -> list[int]:
    """Extend every branch by one piece, and return the row that each new open branch came from.

    `scores` [rows, V] are those of the open branches.
    """
    size = rules.decoding.beam
    parents: list[int] = []
    first = 0
    for prefix, beam in zip(prefixes, found, strict=True):
        branches = beam.open
        chosen = _expand(branches, scores[first : first + len(branches)], size) if branches else []
        beam.open = []
        for parent, piece, score, greedy in chosen:
            grown = _grow(branches[parent], piece, score, greedy, prefix.read, rules)
            if piece == END:
                beam.ended.append(grown)
            elif len(beam.ended) < size or greedy:
                beam.open.append(grown)
                parents.append(first + parent)
        first += len(branches)
    return parents


def _expand(branches: list[_Branch], scores: np.ndarray, beam: int) -> list[tuple[int, int, float, bool]]:
    """Return the best next pieces over all branches of one sentence: (branch, piece, score, still greedy).

    `scores` is [branches, V]. The best piece of the greedy branch is always among them.
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
    shifted: np.ndarray = logits - logits.max(axis=-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted
