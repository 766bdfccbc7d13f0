"""Batched decoding of many sentences under a policy. It writes the same words as live sessions."""

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

# The batch is compacted when at most this share of its rows is still open. Computing a few unused rows costs less than
# copying the states of the others.
COMPACT_BELOW = 0.8


@dataclass(frozen=True)
class Sources:
    """Padded source pieces of several sentences, each with its end symbol."""

    pieces: np.ndarray  # [B, S]
    units: list[np.ndarray]  # unit of each real piece of a row; the end has |x|+1
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
        """Return how many pieces of a row belong to its first `read` units."""
        return int(np.searchsorted(self.units[row], read, side="right"))


def decode(engine: Engine[State], sources: Sources, rules: Rules) -> list[Hypothesis]:
    """Translate several sentences together.

    While the source is open, decoding is greedy or uses the look-ahead. Once the end of the source is read, a beam
    above 1 searches the rest.
    """
    unit, decoding = rules.policy.unit, rules.decoding
    rows = len(sources.lengths)
    found = [Hypothesis() for _ in range(rows)]
    read = [0] * rows  # units read of each row, including the end
    row_sentences = np.arange(rows)  # the sentence of each row of the state
    state = engine.read(engine.start(rows), sources.pieces)
    previous = np.full(rows, BEGIN)
    while len(row_sentences):
        still_open = np.array([not found[row].ended for row in row_sentences])
        for row in row_sentences[still_open]:
            if found[row].between_units(unit):
                read[row] = _read_on(rules, read[row], found[row].units, sources.lengths[row])
        read_all = still_open & np.array([read[row] > sources.lengths[row] for row in row_sentences])
        visible = np.array([sources.visible(int(row), read[row]) for row in row_sentences])
        at_end = decoding.beam > 1 and read_all.any()  # these rows go first: the beam search finishes them at once
        working = (read_all if at_end else still_open).nonzero()[0]
        prefixes = [
            PrefixState(
                found[row],
                int(previous[i]),
                read[row],
                sources.pieces[row, : visible[i]],
                source_ended=bool(read_all[i]),
            )
            for i, row in zip(working, row_sentences[working], strict=True)
        ]
        if at_end:
            best = run(finish(engine, engine.select(state, working), prefixes, rules))
            for row, hypothesis in zip(row_sentences[working], best, strict=True):
                found[row] = hypothesis
        else:
            after, logits = engine.write(state, previous, visible)
            logits = logits[working]
            reading = [rules.prefers_reading(*asked) for asked in zip(logits, prefixes, strict=True)]
            if any(reading):  # these rows read one more unit. Nothing was written, and the step is computed again
                for row in row_sentences[working[reading]]:
                    read[row] += 1
                continue
            state = after
            branches = engine.select(state, working) if decoding.ahead else state
            pieces = next_pieces(engine, branches, logits, prefixes, rules)
            for i, piece in zip(working, pieces, strict=True):
                previous[i] = piece
                found[row_sentences[i]].add(piece, read[row_sentences[i]], rules.ends_word, unit)
        kept = np.array([i for i, row in enumerate(row_sentences) if not found[row].ended], dtype=np.int64)
        if len(kept) <= COMPACT_BELOW * len(row_sentences):
            row_sentences, previous = row_sentences[kept], previous[kept]
            state = engine.select(state, kept) if len(kept) else state
    return found


def _read_on(rules: Rules, read: int, written: int, length: int) -> int:
    """Return the units read, including the end, when the policy next writes, for a complete source."""
    while rules.action(read, written, read > length) is Action.READ:
        read += 1
    return read
