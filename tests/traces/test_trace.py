"""A Trace: what it refuses, and what survives a line of JSON."""

from __future__ import annotations

import doctest
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacl.support.errors import UserError
from stacl.traces import trace as module
from stacl.traces.trace import Revision, Trace

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
seconds = st.floats(0, 1e6)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    source = draw(st.lists(words, max_size=8))
    delays = sorted(draw(st.lists(st.integers(0, len(source)), max_size=8)))
    unit = draw(st.sampled_from(module.UNITS))
    units = words if unit != "char" else st.characters(exclude_categories=["Cs"])
    target = draw(st.lists(units, min_size=len(delays), max_size=len(delays)))
    revisions = [Revision(delay, t, (word,)) for t, (delay, word) in enumerate(zip(delays, target, strict=True))]
    if bool(revisions) and draw(st.booleans()):
        last = revisions[-1]
        revisions[-1:] = [Revision(last.read, last.keep, ("?", "?"), 0.5), last]
    read_times = sorted(draw(st.lists(seconds, min_size=len(source), max_size=len(source))))
    written = sorted(draw(st.lists(seconds, min_size=len(delays), max_size=len(delays))))
    # Nothing is shown before what it has seen.
    write_times = [max(when, (0.0, *read_times)[delay]) for when, delay in zip(written, delays, strict=True)]
    return Trace(
        source_length=len(source),
        delays=tuple(delays),
        source=draw(st.sampled_from([(), tuple(source)])),
        target=draw(st.sampled_from([(), tuple(target)])) if not revisions else tuple(target),
        unit=unit,
        read_times=tuple(read_times),
        write_times=tuple(write_times),
        policy=draw(st.text(max_size=5)),
        compute_seconds=draw(seconds),
        revisions=draw(st.sampled_from([(), tuple(revisions)])),
        reference=draw(st.text(max_size=10)),
    )


def test_milliseconds_may_have_fractions() -> None:
    assert Trace(1500.5, (300.25, 1500.5), unit="ms").delays == (300.25, 1500.5)  # type: ignore[arg-type]


def test_examples() -> None:
    assert doctest.testmod(module).failed == 0


@given(traces())
def test_json_round_trip(trace: Trace) -> None:
    line = trace.to_json()
    assert "\n" not in line
    assert Trace.from_json(line) == trace
    assert Trace.from_json(line.encode()) == trace


@given(traces())
def test_actions_tell_the_path(trace: Trace) -> None:
    actions = trace.actions()
    assert actions.count("R") == trace.source_length
    assert actions.count("W") == len(trace.delays)
    assert tuple(actions[:i].count("R") for i, action in enumerate(actions) if action == "W") == trace.delays


@given(traces().filter(lambda trace: trace.target and trace.unit == "word"))
def test_characters_inherit_delay_and_time(trace: Trace) -> None:
    chars = trace.in_unit("char")
    assert chars.text() == "".join(trace.target).replace(" ", "").replace(module.SPACE_MARK, "")
    assert set(chars.delays) <= set(trace.delays)
    assert len(chars.write_times) == len(chars.delays)
    assert chars.in_unit("char") == chars


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"source_length": 3, "delays": (1, 3, 2)}, "delays decrease: target unit 3 has delay 2 after 3"),
        ({"source_length": 3, "delays": (1, 4)}, "delay 4 of target unit 2 exceeds the source length 3"),
        ({"source_length": 3, "delays": (-1, 2)}, "target unit 1 has delay -1"),
        ({"source_length": -1, "delays": ()}, "source_length is -1; it must be 0 or more"),
        ({"source_length": 3, "delays": (1, math.nan, 3)}, "a delay is nan; it must be a finite number"),
        ({"source_length": 3, "delays": (math.nan,), "unit": "ms"}, "a delay is nan; it must be a finite number"),
        ({"source_length": 3, "delays": (1, math.inf), "unit": "ms"}, "a delay is inf; it must be a finite number"),
        ({"source_length": math.nan, "delays": (), "unit": "ms"}, "source_length is nan; it must be a finite number"),
        ({"source_length": 3, "delays": (1, 2.5)}, "a delay is 2.5; it counts source units and must be a whole number"),
        ({"source_length": 2.5, "delays": (1, 2)}, "source_length is 2.5; it counts source units"),
        ({"source_length": 2, "delays": (1,), "target": ("a", "b")}, "target has 2 entries"),
        (
            {"source_length": 2, "delays": (1,), "source": ("a",)},
            "source has 1 entries, but source_length is 2",
        ),
        ({"source_length": 2, "delays": (1,), "read_times": (0.1,)}, "read_times has 1 entries"),
        ({"source_length": 2, "delays": (1,), "write_times": (0.1, 0.2)}, "write_times has 2 entries"),
        ({"source_length": 2, "delays": (1,), "unit": "wrod"}, "unknown unit 'wrod'; did you mean word?"),
        (
            {"source_length": 2, "delays": (1,), "revisions": (Revision(1, 1, ("a",)),)},
            "revision 1 keeps 1 units",
        ),
        (
            {"source_length": 2, "delays": (1,), "revisions": (Revision(3, 0, ("a",)),)},
            "revision 1 has read 3",
        ),
        ({"source_length": 2, "delays": (1,), "revisions": (Revision(1, 0, ()),)}, "end with 0 target units"),
        (
            {"source_length": 2, "delays": (1,), "target": ("b",), "revisions": (Revision(1, 0, ("a",)),)},
            "do not end with the target",
        ),
        (  # the delay of a word's first appearance, not of its last change
            {"source_length": 2, "delays": (1,), "revisions": (Revision(1, 0, ("a",)), Revision(2, 0, ("b",)))},
            "target unit 1 has the delay 1, but its last change came after 2 source units",
        ),
    ],
)
def test_impossible_traces(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message.replace("?", r"\?")):
        Trace(**arguments)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"delays": [1]}, "'source_length' is missing"),
        ({"source_length": 1}, "'delays' is missing"),
        ({"source_length": "1", "delays": []}, "source_length must be a whole number, not '1'"),
        ({"source_length": True, "delays": []}, "source_length must be a whole number"),
        ({"source_length": 1, "delays": [0.5]}, "delays must hold whole numbers, not 0.5"),
        ({"source_length": 1, "delays": 1}, "delays must be a list"),
        (
            {"source_length": 1, "delays": [1], "delay": [1]},
            "unknown field 'delay' in a trace; did you mean delays",
        ),
        ({"source_length": 1, "delays": [1], "target": "ab"}, "target must be a list of strings"),
        (
            {"source_length": 1, "delays": [1], "write_times": ["soon"]},
            "write_times must be a number, not 'soon'",
        ),
        ({"source_length": 1, "delays": [1], "revisions": [{"read": 1}]}, "a revision has the fields"),
        ({"source_length": 1, "delays": [1], "revisions": [1]}, "revisions must be a list of objects"),
        ({"source_length": 1, "delays": [1], "policy": 3}, "policy must be text"),
        ([1, 2], "expected a JSON object"),
    ],
)
def test_wrong_json(fields: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Trace.from_json(json.dumps(fields))


def test_broken_json() -> None:
    with pytest.raises(UserError, match="not valid JSON"):
        Trace.from_json('{"source_length": 3, ')


def test_a_re_translating_system() -> None:
    changes = [
        Revision(1, 0, ("I",), 0.5),
        Revision(2, 1, ("am", "here"), 1.0),
        Revision(3, 1, ("was", "there"), 1.5),
        Revision(3, 3, (".",), 1.75),
    ]
    trace = Trace.from_revisions(["x", "y", "z"], changes, policy="again")
    assert trace.text() == "I was there ."
    assert trace.delays == (1, 3, 3, 3)
    assert trace.write_times == (0.5, 1.5, 1.5, 1.75)
    assert trace.erased() == 2
    assert Trace.from_json(trace.to_json()) == trace


def test_units_that_cannot_be_had() -> None:
    with pytest.raises(UserError, match="cannot be counted in 'word'"):
        Trace(2, (1,), target=("a▁",), unit="piece").in_unit("word")
    assert Trace(2, (1, 2), target=("▁He", "llo"), unit="piece").in_unit("char").text() == "Hello"


def test_cutoff() -> None:
    assert Trace(3, (1, 3, 3)).cutoff() == 2
    assert Trace(3, (1, 2)).cutoff() is None


@pytest.mark.parametrize(
    ("clock", "message"),
    [
        ({"write_times": (3.1, 2.1, 1.1)}, "write_times decrease: entry 2 is 2.1 after 3.1"),
        ({"read_times": (3.0, 2.0, 1.0)}, "read_times decrease: entry 2 is 2 after 3"),
        ({"write_times": (-5.0, 2.1, 3.1)}, "write_times decrease: entry 1 is -5 after 0"),
        ({"write_times": (1.0, math.nan, 3.1)}, "write_times decrease: entry 2 is nan after 1"),
        ({"compute_seconds": -4.0}, "compute_seconds is -4; it must be 0 or more"),
        ({"compute_seconds": math.nan}, "compute_seconds is nan; it must be 0 or more"),
        (
            {"read_times": (1.0, 2.0, 3.0), "write_times": (0.1, 2.2, 3.3)},
            "target unit 1 was shown at 0.1 s, before its source unit 1 at 1 s",
        ),
    ],
)
def test_clocks_that_cannot_be(clock: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Trace(3, (1, 2, 3), **clock)


def test_pieces_of_subword_nmt_are_joined_where_they_say_so() -> None:
    cut = Trace(3, (1, 2, 2, 3), target=("the", "qui@@", "ck", "brown"), unit="piece")
    assert cut.text() == "the quick brown"
    assert cut.in_unit("char").text() == "thequickbrown"
    assert Trace(1, (1, 1), target=("the", "bro@@"), unit="piece").text() == "the bro"  # where it was cut short
    assert Trace(1, (1, 1), target=("the", "fox"), unit="piece").text() == "the fox"  # no word of it was cut


def test_a_word_is_no_character() -> None:
    with pytest.raises(UserError, match="'世界' is more than one character; log it with unit word"):
        Trace(4, (1, 2), unit="char", target=("吗", "世界"))
    assert Trace(4, (1, 2), unit="char", target=("吗 ", "世")).text() == "吗 世"
