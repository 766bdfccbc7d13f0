"""Filters drop bad pairs and count the reasons."""

from __future__ import annotations

import math

import pytest

from stacl.corpora.base import corpus
from stacl.support.errors import UserError
from stacl.text.languages import language
from stacl.training.filters import FilterReport, PairFilter, filtered

DE, EN, ZH = language("de"), language("en"), language("zh")


def kept(keep: PairFilter, pairs: list[tuple[str, str]]) -> list[int]:
    """The positions of the pairs that pass."""
    return [pairs.index((pair.source, pair.target)) for pair in keep(pairs)]


def test_each_reason_is_counted_once() -> None:
    keep = PairFilter(DE, EN, shortest=2, longest=4, ratio=1.5)
    pairs = [
        ("ein Haus", "a house"),
        ("", "a house"),
        ("\u200b \u00a0", "a house"),
        ("Haus", "a house"),
        ("a b c d e", "a b c d"),
        ("a b", "a b c d e"),
        ("ein\u00a0Haus", "a  house "),
        ("ein Haus", "another house"),
    ]
    assert kept(keep, pairs) == [0, 7]
    assert keep.report == FilterReport(
        8,
        {
            "a side is empty": 2,
            "a side has more than 4 words": 2,
            "a side has fewer than 2 words": 1,
            "duplicate of an earlier pair": 1,
        },
    )
    assert keep.report.kept == 2
    assert str(keep.report).splitlines()[0] == "kept 2 of 8 pairs"
    assert len(str(keep.report).splitlines()) == 5


def test_the_ratio_is_lenient_with_short_sentences() -> None:
    keep = PairFilter(DE, EN, ratio=2)
    assert kept(keep, [("Danke", "Thank you very much"), ("Danke", "Thank you very much indeed my friend")]) == [0]
    assert kept(PairFilter(EN, DE, ratio=2), [("Thank you very much indeed my friend", "Danke")]) == []


def test_encoded_binary_data_is_dropped() -> None:
    """An image in base64 is one word with thousands of pieces."""
    keep = PairFilter(language("de"), language("en"), longest=100)
    assert not list(keep([("Bild " + "iVBORw0KGgo" * 2000, "picture " + "iVBORw0KGgo" * 2000)]))
    assert str(keep.report).endswith("dropped 1: a side has a word of 256 characters or more")


def test_lengths_are_in_words_of_the_language() -> None:
    pair = ("他在学习。", "He is learning .")
    assert kept(PairFilter(ZH, EN, longest=4), [pair]) == [0]
    assert kept(PairFilter(ZH, EN, longest=3), [pair]) == []


def test_switched_off_tests_drop_only_the_empty() -> None:
    keep = PairFilter(DE, EN, duplicates=True)
    assert len(list(keep([("a " * 500, "b"), ("a", "b"), ("a", "b"), ("", "b")]))) == 3


def test_a_filter_streams_and_keeps_counting() -> None:
    keep = PairFilter(DE, EN)
    endless = (("a", str(number)) for number in iter(int, 1))
    first = keep(endless)
    assert next(first) == ("a", "0", ["a"], ["0"])
    assert [pair.source for pair in keep([("a", "0"), ("b", "c")])] == ["b"]
    assert keep.report.seen == 3


@pytest.mark.parametrize(
    "options", [{"shortest": 0}, {"shortest": 5, "longest": 4}, {"ratio": 0.5}, {"ratio": math.nan}]
)
def test_invalid_limits(options: dict[str, float]) -> None:
    with pytest.raises(UserError, match="filter"):
        PairFilter(DE, EN, **options)  # type: ignore[arg-type]


def test_repeated_corpora_are_not_duplicates() -> None:
    toy = language("art")
    keep = PairFilter(toy, toy)
    rows = list(filtered(corpus(["copy:pairs=3", "copy:pairs=3", "reverse:pairs=2*3"]), "train", keep))
    assert len(rows) == 3 + 2 * 3
    assert keep.report.dropped == {"duplicate of an earlier pair": 3}
    assert len(list(filtered(corpus("copy:pairs=3*2"), "val", PairFilter(toy, toy)))) == 200
    with pytest.raises(UserError, match="no split"):
        list(filtered(corpus("copy"), "nosuch", keep))


def test_sentences_of_test_sets_are_dropped() -> None:
    pairs = [("Guten Tag.", "Good day."), ("Moin.", "Hello there."), ("Guten  Tag.\u200b", "Hi."), ("Ja.", "Yes.")]
    keep = PairFilter(DE, EN, unseen=["Guten Tag.", "Hello there."])
    assert kept(keep, pairs) == [3]
    assert keep.report.dropped == {"a side occurs in a set of data.unseen": 3}
