"""All policies in stacl/policies/ and their text forms."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stacl
from stacl.policies.base import Action, Policy, View, cut_off, policy
from stacl.support import plugins
from stacl.support.errors import UserError

# At least one text form per policy file; the contract below fails for a file without one.
EXAMPLES = {
    "confidence": ["confidence:1-6", "confidence:2-8,sure=0.6,unsure=0.15", "confidence:3-3"],
    "full": ["full"],
    "none": ["none"],
    "wait-k": [
        "wait-k:1",
        "wait-k:3",
        "wait-k:50",
        "wait-k:inf",
        "wait-k:3,c=0.25",
        "wait-k:3,c=-1/4",
        "wait-k:3,ratio=1.25",
        "wait-k:2,ratio=0.8",
        "wait-k:1,c=0.99",
        "wait-k:1-9",
        "wait-k:2-inf",
        "wait-k:1-5,c=0.2",
    ],
}
SPECS = [spec for specs in EXAMPLES.values() for spec in specs]
lengths = st.integers(0, 60)


def test_every_file_has_an_example() -> None:
    assert set(plugins.names("policies")) == set(EXAMPLES)
    for name, specs in EXAMPLES.items():
        kind = plugins.find("policies", name, Policy)  # type: ignore[type-abstract]
        assert all(type(policy(spec)) is kind for spec in specs)


@pytest.mark.parametrize("unit", ["word", "piece"])
@pytest.mark.parametrize("spec", SPECS)
def test_text_form_round_trip(spec: str, unit: str) -> None:
    written = policy(spec, unit)
    assert policy(str(written)) == written
    assert policy(str(written)).schedule(13, 17) == written.schedule(13, 17)
    assert written.unit == policy(str(written)).unit == unit


@pytest.mark.parametrize("spec", SPECS)
@given(source=lengths, target=lengths)
def test_monotone_and_bounded(spec: str, source: int, target: int) -> None:
    shown = policy(spec)
    for g, top in ((shown.schedule(source, target), source), (shown.visible(source, target), source + 1)):
        assert len(g) == target
        assert all(0 <= read <= top for read in g)
        assert g == sorted(g)


@pytest.mark.parametrize("spec", SPECS)
@given(source=lengths, target=lengths, seed=st.integers(0, 1000))
def test_decide_stepped_is_the_schedule(spec: str, source: int, target: int, seed: int) -> None:
    """Step-by-step live decisions match the training mask."""
    drawn = policy(spec).draw(random.Random(seed), source).decoding_policy()
    live: list[int] = []
    read = 0
    while len(live) < target:
        if drawn.decide(View(read, len(live), ended=read == source + 1)) is Action.READ:
            read += 1
        else:
            live.append(read)
    assert live == drawn.visible(source, target)
    assert [min(seen, source) for seen in live] == drawn.schedule(source, target)


@pytest.mark.parametrize("spec", SPECS)
@given(source=lengths, seed=st.integers(0, 1000))
def test_a_drawn_policy_is_single(spec: str, source: int, seed: int) -> None:
    drawn = policy(spec).draw(random.Random(seed), source)
    assert drawn.decoding_policy() == drawn
    assert drawn.unit == policy(spec).unit


def test_the_papers_example() -> None:
    """|x| = 7, k = 2: y_3 sees four words, the cut-off is step 6."""
    g = policy("wait-k:2").schedule(7, 9)
    assert g[2] == 4
    assert cut_off(g, 7) == 6


@given(k=st.integers(1, 30), source=st.integers(1, 60))
def test_wait_k_closed_forms(k: int, source: int) -> None:
    g = policy(f"wait-k:{k}").schedule(source, source + k)
    assert g == [min(k + t - 1, source) for t in range(1, source + k + 1)]
    assert cut_off(g, source) == max(1, source - k + 1)


def test_cut_off_of_an_output_that_stops_early() -> None:
    assert cut_off(policy("wait-k:1").schedule(10, 4), 10) == 4


def test_the_end_is_read_after_the_last_word() -> None:
    assert policy("wait-k:3").visible(6, 7) == [3, 4, 5, 6, 7, 7, 7]
    assert policy("full").visible(6, 2) == [7, 7]
    assert policy("none").visible(6, 2) == [0, 0]


def test_catch_up_pattern_of_the_paper() -> None:
    """R R (R W R W R W R W W)+ for r = 1.25, k = 3."""
    g = policy("wait-k:3,ratio=1.25").schedule(14, 15)
    path = stacl.Trace(14, tuple(g)).actions()
    assert path.startswith("RR" + "RWRWRWRWW" * 3)
    assert policy("wait-k:3,ratio=1.25").schedule(30, 40) == policy("wait-k:3,c=0.2").schedule(30, 40)


def test_catch_up_by_the_formula() -> None:
    g = policy("wait-k:3,c=0.25").schedule(100, 40)
    assert g == [3 + t - 1 - math.floor(Fraction(1, 4) * t) for t in range(1, 41)]
    assert policy("wait-k:3,c=-1/4").schedule(100, 1) == [4]


def test_rationals_are_exact() -> None:
    # 0.29 * 100 is 28.999... in binary floating point
    assert policy("wait-k:1,c=0.29").wish(100) == 1 + 100 - 1 - 29
    assert policy("wait-k:1").wish(100) - stacl.policy("wait-k:1,c=29/100").wish(100) == 29
    wait_k: Any = plugins.find("policies", "wait-k", Policy)
    assert wait_k(1, c=0.29).wish(100) == 71


def test_average_lagging_of_catch_up() -> None:
    """SPEC 2: |x| = 40, |y| = 50."""

    def al(spec: str) -> float:
        g = policy(spec).schedule(40, 50)
        tau = cut_off(g, 40)
        return sum(g[t] - t * 40 / 50 for t in range(tau)) / tau

    for k, catch_up, literal, without in [
        (1, 1.21, -0.10, 4.9),
        (3, 3.20, 1.90, 6.7),
        (5, 5.21, 3.98, 8.5),
        (7, 7.20, 6.02, 10.3),
        (9, 9.21, 8.10, 12.1),
    ]:
        assert al(f"wait-k:{k},ratio=1.25") == pytest.approx(catch_up, abs=0.006)
        assert al(f"wait-k:{k},c=0.25") == pytest.approx(literal, abs=0.006)
        assert al(f"wait-k:{k}") == pytest.approx(without, abs=0.06)


def test_multipath_draws_every_k_and_no_other() -> None:
    rng = random.Random(7)
    family = policy("wait-k:2-5")
    assert {family.draw(rng, 50).spec() for _ in range(200)} == {f"wait-k:{k}" for k in (2, 3, 4, 5)}
    assert {policy("wait-k:1-inf").draw(rng, 3).spec() for _ in range(200)} == {f"wait-k:{k}" for k in (1, 2, 3, 4)}
    assert family.decoding_policy().spec() == "wait-k:3"
    assert [policy(f"wait-k:{first}-inf").decoding_policy().spec() for first in (1, 7)] == ["wait-k:5", "wait-k:7"]


def test_unlimited_multipath_draws_k_log_uniformly() -> None:
    rng = random.Random(7)
    drawn = [policy("wait-k:1-inf").draw(rng, 63).k for _ in range(6000)]  # type: ignore[attr-defined]
    assert (min(drawn), max(drawn)) == (1, 64)
    for k in (1, 2, 4, 8, 16):
        share = sum(k <= one < 2 * k for one in drawn) / len(drawn)
        assert share == pytest.approx(math.log(2) / math.log(65), abs=0.02)


def test_custom_policies_from_python() -> None:
    assert policy(lambda t: t * t).schedule(10, 4) == [1, 4, 9, 10]
    assert policy([1, 1, 3]).schedule(6, 5) == [1, 1, 3, 6, 6]
    assert policy([0, math.inf]).schedule(6, 3) == [0, 6, 6]
    assert policy([1, 2], unit="piece").unit == "piece"


def test_custom_policies_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from stacl.policies.base import Policy\n"
        "def twice(t): return 2 * t\n"
        "steps = [1, 3, 3]\n"
        "class Late(Policy):\n"
        "    def wish(self, t): return 4 + t\n"
        "    def spec(self): return 'late'\n"
        "number = 3\n"
        "def down(t): return 5 - t\n"
    )
    file = tmp_path / "mine.py"
    assert policy(f"{file}:twice").schedule(5, 3) == [2, 4, 5]
    assert policy(f"{file}:steps").schedule(5, 4) == [1, 3, 3, 5]
    assert policy(f"{file}:Late").schedule(9, 3) == [5, 6, 7]
    assert policy(f"{file}:twice,unit=piece").unit == "piece"
    for wrong, message in [
        ("number", "must be a function"),
        ("twise", "did you mean twice"),
        ("", "no policy name"),
    ]:
        with pytest.raises(UserError, match=message):
            policy(f"{file}:{wrong}")
    with pytest.raises(UserError, match="must not decrease"):
        policy(f"{file}:down").schedule(9, 3)
    (tmp_path / "broken.py").write_text("1 / 0")
    with pytest.raises(UserError, match="ZeroDivisionError"):
        policy(f"{tmp_path / 'broken.py'}:g")
    with pytest.raises(UserError, match="no file"):
        policy(f"{tmp_path / 'absent.py'}:g")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("wait-k:0", "k must be a whole number from 1"),
        ("wait-k:-3", "k must be a whole number from 1"),
        ("wait-k:2.5", "k must be a whole number from 1"),
        ("wait-k:x", "not 'x'"),
        ("wait-k", "needs a k"),
        ("wait-k:5-2", "decreasing range"),
        ("wait-k:3,c=1", "c must be below 1"),
        ("wait-k:3,c=0.25,c=0.5", "c is given twice, 0.25 and 0.5"),
        ("wait-k:3,c=7/4", "c must be below 1"),
        ("wait-k:3,c=a", "c must be a number"),
        ("wait-k:3,c=1/0", "c must be a number"),
        *((f"wait-k:3,c={number}", "c must be a number") for number in ("1e-999999999", "1.e-999999999", "-1 e400")),
        (f"wait-k:3,c=0.{'1' * 10_000}", "c must be a number"),
        ("wait-k:3,ratio=1e999999999", "ratio must be a number"),
        ("wait-k:3,c=0.1,ratio=2", "not both"),
        ("wait-k:3,ratio=0", "above 0"),
        ("wait-k:3,ration=2", "did you mean ratio"),
        ("wait-k:3,4", "has no argument '4'"),
        ("full:3", "has no argument '3'"),
        ("waitk:3", "did you mean wait-k"),
        ("", "no policy given"),
        ("wait-k:3,unit=byte", "word or piece"),
    ],
)
def test_mistakes_are_reported(wrong: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        policy(wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([3, 2], "must not decrease"),
        ([-1], "negative"),
        ([], "at least one"),
        ([1.5], "whole number"),
        (["2"], "whole number"),
        (lambda t: None, "whole number"),
        (lambda t: 10 - t, "must not decrease"),
        (lambda t: 1 // (2 - t), r"g\(2\) fails: ZeroDivisionError"),
    ],
)
def test_mistakes_in_custom_policies_are_reported(wrong: Callable[..., Any] | list[Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        policy(wrong).schedule(9, 3)


def test_conflicting_units_are_an_error() -> None:
    with pytest.raises(UserError, match="give only one unit"):
        policy("wait-k:3,unit=piece", unit="word")
    with pytest.raises(UserError, match="counts in piece"):
        policy(policy("full", unit="piece"), unit="word")


def test_threads_share_a_custom_policy() -> None:
    """g(t) is slow, so that all threads run it at the same time."""

    def slow(t: int) -> int:
        time.sleep(0.001)
        return t

    chosen = policy(slow)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: chosen.schedule(30, 20), range(16)))
    assert found == [list(range(1, 21))] * 16
