"""Endless repetition is forbidden, in live and batched decoding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacl.api import load
from stacl.decoding.constraints.repetition import ALLOWED, Repetition, times_in_a_row, would_repeat
from stacl.decoding.hypothesis import Hypothesis
from stacl.decoding.options import Decoding
from stacl.runs import pretrained
from stacl.text.subwords import END

ENDS = np.array([False, True] * 5)  # odd pieces end a word
few = st.lists(st.integers(0, 3), max_size=14)


def naive_times(pieces: Sequence[object]) -> int:
    best = 1
    for size in range(1, len(pieces) + 1):
        for start in range(len(pieces)):
            times = 1
            while pieces[start + size * times : start + size * (times + 1)] == pieces[start : start + size]:
                times += 1
            best = max(best, times)
    return best


@given(pieces=few)
def test_counting_equals_the_naive_count(pieces: list[int]) -> None:
    assert times_in_a_row(pieces) == naive_times(pieces)


@given(pieces=few, source=few)
def test_nothing_is_written_more_often_than_allowed(pieces: list[int], source: list[int]) -> None:
    """Write any pieces that are allowed: no block of whole words is repeated too often."""
    written = Hypothesis()
    for piece in pieces:
        if written.in_word or piece not in would_repeat(written.pieces, ENDS, source):
            written.add(piece, 1, ENDS, "word")
    words, word = [], []
    for piece in written.pieces:
        word.append(piece)
        if ENDS[piece]:
            words.append(tuple(word))
            word = []
    assert naive_times(words) <= max(ALLOWED, naive_times(source))


def test_a_number_may_have_many_zeros() -> None:
    zeros = Hypothesis()
    for piece in (6, 6, 6):  # within a word
        zeros.add(piece, 1, ENDS, "word")
    logits = np.zeros(10)
    Repetition(ENDS, lambda pieces: []).forbid(logits, zeros, [4, 5])
    assert np.isfinite(logits[6])


@pytest.mark.parametrize("times", [4, 7])
def test_repetition_in_the_source_is_followed(times: int) -> None:
    source = [7] * times
    assert would_repeat([5] * (times - 1), ENDS, source) == []
    assert would_repeat([5] * times, ENDS, source) == [5]


def test_case_and_marks_do_not_hide_repetition_in_the_source() -> None:
    """The pieces of "Nein, nein, nein!" have no block that occurs three times."""
    pieces = load(pretrained.folder("photos-de-en")).source_pieces
    source = [*pieces.encode(["Nein,", "nein,", "„nein!“"]), END]
    assert times_in_a_row(source) <= 2
    assert would_repeat([5] * 2, ENDS, source) == [5]
    assert would_repeat([5] * 2, ENDS, source, pieces.words) == []
    assert would_repeat([5] * 3, ENDS, source, pieces.words) == [5]
    assert would_repeat([5] * 2, ENDS, pieces.encode(["!", "?", "–"]), pieces.words) == [5]  # no words at all


def test_no_three_times() -> None:
    assert load("en-zh").translate("No, no, no!", "full") == "不，不，不！"


@pytest.mark.parametrize("spec", ["wait-k:1", "wait-k:3", "full"])
@pytest.mark.parametrize("beam", [1, 3])
def test_live_and_batched_write_the_same_for_looping_input(spec: str, beam: int) -> None:
    translator = load(pretrained.folder("photos-de-en"))
    lines = [
        "Die Regierung der Regierung hat die Regierung",
        "nein nein nein nein nein nein",
        "und und der der die und",
        "Nein, nein, nein, nein! Nein, nein!",
    ]
    together = [trace.target for trace in translator.translate_lines(lines, spec, decoding=Decoding(beam=beam))]
    for line, expected in zip(lines, together, strict=True):
        live = translator.stream(spec, decoding=Decoding(beam=beam))
        for word in line.split():
            live.read(word)
        live.close()
        assert live.trace.target == expected
