"""Numbers have the same digits as in the source."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stacl import api
from stacl.decoding.constraints.numbers import Numbers
from stacl.decoding.hypothesis import Hypothesis
from stacl.decoding.options import Decoding
from stacl.runs import pretrained
from stacl.runs.folder import RunFolder
from stacl.text.subwords import END

VOCABULARIES = {name: RunFolder(pretrained.folder(name)).vocabularies() for name in ("de-en", "en-zh")}
NUMBERS = {name: Numbers(*sides, myriads=name == "en-zh") for name, sides in VOCABULARIES.items()}
DIGITS, MARKS = "0123456789", ".,:/-"


def allowed(source: str, written: str, model: str = "de-en") -> str:
    """Return the digits, marks and space that may come next. Without a final space, the last word is open."""
    source_pieces, target = VOCABULARIES[model]
    pieces = [piece for word in written.split(" ")[:-1] for piece in target.encode_word(word)]
    pieces += [target.pieces.index(character) for character in written.split(" ")[-1]]
    logits = np.zeros(len(target))
    NUMBERS[model].forbid(logits, Hypothesis(pieces), [*source_pieces.encode(source.split()), END])
    free = {target.pieces[piece].replace("\u2581", " ") for piece in np.flatnonzero(np.isfinite(logits))}
    return "".join(character for character in f"{DIGITS}{MARKS} " if character in free)


def is_allowed(source: str, written: str, model: str = "de-en") -> bool:
    """Whether each digit and mark of the last word, and its end, is allowed."""
    first = written.rfind(" ") + 1
    return all(
        character in allowed(source, written[:place], model)
        for place, character in enumerate(f"{written} ")
        if place > first
    )


@pytest.mark.parametrize(
    ("source", "written", "after"),
    [
        ("Er gewann 1.000.000 Euro.", "1,0", "0"),
        ("Er gewann 1.000.000 Euro.", "1,000", ".,"),  # may not end: the source has no thousand
        ("Er gewann 1.000.000 Euro.", "1000", "0.,"),
        ("Er gewann 1000000 Euro.", "1,000", ".,"),
        ("Er gewann 1.000.000 Euro.", "1", f"0{MARKS} "),  # a million
        ("Es war 1990 kalt.", "in 19", "9"),
        ("Es war 1990 kalt.", "in 1990", f"{MARKS} "),
        ("Das kostet 1299,50 Euro.", "It costs 1", "2.,"),
        ("Das kostet 1299,50 Euro.", "It costs 129", "9"),
        ("Das kostet 1299,50 Euro.", "It costs 1,299.", f"15{MARKS} "),  # continues, or begins another number
        ("Am 24.12.2024 um 18:30 Uhr", "On 12", f"{MARKS} "),
        ("Am 24.12.2024 um 18:30 Uhr", "On 12.", f"123{MARKS} "),  # 24, 12, 2024, 18 or 30
        ("Es war 1990 kalt.", "about 20", f"{DIGITS}{MARKS} "),  # begins like no number of the source
        ("Zwanzig Leute", "2", f"{DIGITS}{MARKS} "),  # the source has no digit
    ],
)
def test_what_may_follow(source: str, written: str, after: str) -> None:
    assert allowed(source, written) == after


@pytest.mark.parametrize(
    ("source", "written"),
    [
        ("Es sind 10000 Leute.", "10,000"),
        ("Es sind 10.000 Leute.", "10000"),
        ("Es sind 10 000 Leute.", "10,000"),
        ("Es sind 1.234.567,89 Euro.", "1,234,567.89"),
        ("Um 18.30 Uhr", "18:30"),
        ("Am 3.4.2020", "2020"),
        ("Am 3.4.2020", "4/3/2020"),
        ("Die 5-jährige Anna", "5-"),
        ("Es sind 3 Millionen.", "3,000,000"),
        ("Es sind 12 Tausend.", "12,000"),
    ],
)
def test_another_way_to_write_it_is_allowed(source: str, written: str) -> None:
    assert is_allowed(source, written)


@pytest.mark.parametrize(
    ("source", "written", "fine"),
    [
        ("There are 330,000 people.", "33", True),  # 万
        ("There are 330,000 people.", "3", False),
        ("It cost 2.3 billion dollars.", "23", True),
        ("It cost 1.5 million dollars.", "150", True),
        ("On November 16, 2019", "11", True),
        ("On March 16, 2019", "11", False),
        ("He paid £189m.", "1.89", True),
    ],
)
def test_chinese_uses_ten_thousands_and_numbered_months(source: str, written: str, fine: bool) -> None:
    assert is_allowed(source, written, "en-zh") is fine


number = st.one_of(
    st.integers(0, 10**7).map(str),
    st.integers(1000, 10**9).map(lambda n: f"{n:,}".replace(",", ".")),
    st.tuples(st.integers(0, 10**5), st.integers(0, 999)).map(lambda pair: f"{pair[0]},{pair[1]}"),
    st.dates().map(lambda day: f"{day.day}.{day.month}.{day.year}"),
    st.times().map(lambda time: f"{time:%H:%M}"),
)


@given(st.lists(number, min_size=1, max_size=6), st.data())
@settings(max_examples=60, deadline=None)
def test_the_form_of_the_source_is_always_allowed(source: list[Any], data: st.DataObject) -> None:
    assert is_allowed(" und ".join(source), data.draw(st.sampled_from(source)))


@given(st.text("0123456789.,:-/ 万", min_size=1, max_size=30), st.text("0123456789.,:", min_size=1, max_size=12))
@settings(max_examples=150, deadline=None)
def test_something_is_always_allowed(source: str, written: str) -> None:
    assert allowed(source, written)


def test_the_rule_yields_if_only_forbidden_pieces_are_left() -> None:
    source, target = VOCABULARIES["de-en"]
    logits = np.full(len(target), -np.inf)
    logits[END] = 0.0
    NUMBERS["de-en"].forbid(logits, Hypothesis([target.pieces.index("1")]), source.encode(["12"]))
    assert logits[END] == 0.0


def test_only_the_last_numbers_of_a_table_count() -> None:
    table = " ".join(str(n) for n in range(1000, 2000))
    assert allowed(table, "193") == "6789"  # among the last of them
    assert allowed(table, "12") == f"{DIGITS}{MARKS} "  # among the first


@pytest.mark.parametrize(
    ("name", "source", "number"),
    [
        ("de-en", "Er hat 1.000.000 Euro gewonnen.", "1,000,000"),
        ("de-en", "Meine Nummer ist 5551234567.", "5551234567"),
        ("en-de", "He was born in 1990.", "1990"),
        ("zh-en", "他有555本书。", "555"),
    ],
)
@pytest.mark.parametrize("policy", ["wait-k:3", "confidence:2-6", "full"])
def test_shipped_models_keep_numbers(name: str, source: str, number: str, policy: str) -> None:
    translator = api.load(name)
    (trace,) = translator.translate_lines([source], policy, decoding=Decoding(beam=3))
    assert number in translator.target_language.join(trace.target)
    with translator.stream(policy, decoding=Decoding(beam=3)) as live:
        for word in translator.source_language.split(source):
            live.read(word)
        live.close()
        assert live.trace.target == trace.target


@pytest.mark.parametrize("unit", ["m", "Millimeter", "Milligramm", "billige Karten", "km", "k"])
def test_units_are_not_multipliers(unit: str) -> None:
    assert not is_allowed(f"Der Berg ist 5000 {unit} hoch.", "500")
    assert is_allowed(f"Der Berg ist 5000 {unit} hoch.", "5,000")


def test_a_table_of_long_numbers_is_fast() -> None:
    """Each mark may begin any number again: hundreds of places lead to hundreds of others."""
    table = " ".join(f"1-{row}-1-1-1-1-1-1" for row in range(60))
    began = time.process_time()
    assert allowed(table, "-".join("1" * 18)) == f"{DIGITS}{MARKS} "
    assert time.process_time() - began < 3
