"""Batched decoding: many sentences together, each reading by the policy. The words are those of live sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stacl.decoding.beam import finish, next_pieces
from stacl.decoding.engine import Engine, State
from stacl.decoding.hypothesis import Hypothesis, PrefixState
from stacl.decoding.rules import Rules
from stacl.policies.base import Action
from stacl.support.stepwise import run
from stacl.text.subwords import BEGIN, END, PAD, units_of

# Sentences that have ended stay in the batch until so few are left: copying the states of the others costs more than
# computing a few unused rows.
COMPACT_BELOW = 0.8


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


def decode(engine: Engine[State], sources: Sources, rules: Rules) -> list[Hypothesis]:
    """Translations of several sentences, decoded together.

    Greedy, or with a look-ahead, while the source is open; with a beam, the rest by beam search once the end of the
    source is read.
    """
    unit, decoding = rules.policy.unit, rules.decoding
    rows = len(sources.lengths)
    found = [Hypothesis() for _ in range(rows)]
    read = [0] * rows  # units of each row, the end counted
    carried = np.arange(rows)  # numbers of the sentences that the rows of the state belong to
    state = engine.read(engine.start(rows), sources.pieces)
    previous = np.full(rows, BEGIN)
    while len(carried):
        open_ = np.array([not found[row].ended for row in carried])
        for row in carried[open_]:
            if found[row].between_units(unit):
                read[row] = _read_on(rules, read[row], found[row].units, sources.lengths[row])
        read_all = open_ & np.array([read[row] > sources.lengths[row] for row in carried])
        visible = np.array([sources.visible(int(row), read[row]) for row in carried])
        at_end = decoding.beam > 1 and read_all.any()  # then these first: they are finished in one go
        working = (read_all if at_end else open_).nonzero()[0]
        prefixes = [
            PrefixState(
                found[row],
                int(previous[i]),
                read[row],
                sources.pieces[row, : visible[i]],
                source_ended=bool(read_all[i]),
            )
            for i, row in zip(working, carried[working], strict=True)
        ]
        if at_end:
            best = run(finish(engine, engine.select(state, working), prefixes, rules))
            for row, hypothesis in zip(carried[working], best, strict=True):
                found[row] = hypothesis
        else:
            after, logits = engine.write(state, previous, visible)
            logits = logits[working]
            reading = [rules.prefers_reading(*asked) for asked in zip(logits, prefixes, strict=True)]
            if any(reading):  # they read one more unit, and the step is computed again: nothing was written
                for row in carried[working[reading]]:
                    read[row] += 1
                continue
            state = after
            branches = engine.select(state, working) if decoding.ahead else state
            pieces = next_pieces(engine, branches, logits, prefixes, rules)
            for i, piece in zip(working, pieces, strict=True):
                previous[i] = piece
                found[carried[i]].add(piece, read[carried[i]], rules.ends_word, unit)
        kept = np.array([i for i, row in enumerate(carried) if not found[row].ended], dtype=np.int64)
        if len(kept) <= COMPACT_BELOW * len(carried):
            carried, previous = carried[kept], previous[kept]
            state = engine.select(state, kept) if len(kept) else state
    return found


def _read_on(rules: Rules, read: int, written: int, length: int) -> int:
    """Units read, the end counted, when the policy next writes, in a source that is all there."""
    while rules.action(read, written, read > length) is Action.READ:
        read += 1
    return read
