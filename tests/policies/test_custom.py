"""Custom policy classes, and the policy none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacl.decoding.hypothesis import Hypothesis, PrefixState
from stacl.decoding.rules import Rules
from stacl.evaluation.evaluate import Condition
from stacl.policies.base import Action, Policy, View, policy
from stacl.support.errors import UserError

lengths = st.integers(0, 60)


class Lag(Policy):
    """Overrides `decide` and has no `wish`."""

    def decide(self, view: View) -> Action:
        return Action.READ if view.read - view.written < 3 else Action.WRITE

    def spec(self) -> str:
        return "lag"


class Half(Policy):
    """`wish` returns fractions, and decreases once."""

    def wish(self, t: int) -> float:
        return 1.5 * t if t != 4 else 1

    def spec(self) -> str:
        return "half"


@pytest.mark.parametrize("kind", [Lag, Half])
@given(source=lengths, target=lengths)
def test_training_of_a_custom_class_matches_live(kind: type[Any], source: int, target: int) -> None:
    live: list[int] = []
    rules, read = Rules(np.zeros(1, dtype=bool), kind()), 0
    while len(live) < target:
        if rules.action(read, len(live), source_ended=read == source + 1) is Action.READ:
            read += 1
        else:
            live.append(read)
    assert kind().visible(source, target) == live
    assert kind().schedule(source, target) == [min(seen, source) for seen in live]
    assert kind().fingerprint() == kind().schedule(100, 100)


def test_mistakes_in_a_policy_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from stacl.policies.base import Policy\n"
        "class NeedsK(Policy):\n"
        "    def __init__(self, k, unit='word'): super().__init__(unit)\n"
        "    def wish(self, t): return 1\n"
        "    def spec(self): return 'needs'\n"
        "class NoName(Policy):\n"
        "    def wish(self, t): return 1\n"
        "class Neither(Policy):\n"
        "    def spec(self): return 'neither'\n"
        "made = NeedsK(3)\n"
        "class Angry(Policy):\n"
        "    def __init__(self, unit): raise ValueError('no mood')\n"
        "    def spec(self): return 'angry'\n"
        "def g(t): return t\n"
    )
    for name, message in (
        ("NeedsK", r"NeedsK\(unit='word'\) fails: .*'k'"),
        ("NoName", r"NoName\(unit='word'\) fails: TypeError"),
        ("made,unit=piece", "counts in word, not in piece"),
        ("Angry", r"Angry\(unit='word'\) fails: ValueError: no mood"),
        ("g,foo", "has no argument 'foo'"),
    ):
        with pytest.raises(UserError, match=message):
            policy(f"{file}:{name}")
    assert policy(f"{file}:made").unit == "word"
    with pytest.raises(UserError, match="Neither defines neither wish"):
        policy(f"{file}:Neither").schedule(3, 3)
    with pytest.raises(UserError, match=r"text such as wait-k:3, .* not 3"):
        policy(3)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="none has no argument '3'"):
        policy("none:3")


def test_policies_of_the_same_name_in_two_files_differ(tmp_path: Path) -> None:
    """Results are stored by policy name, so the names must differ."""
    for name, step in (("one", 1), ("two", 2)):
        (tmp_path / f"{name}.py").write_text(
            "from stacl.policies.base import Policy\n"
            "class Mine(Policy):\n"
            f"    def wish(self, t): return {step} * t\n"
            "    def spec(self): return 'mine'\n"
            "made = Mine()\n"
        )
    written = [
        f"{tmp_path}/{name}.py:{what}" for name in ("one", "two") for what in ("Mine", "Mine,unit=piece", "made")
    ]
    assert [str(policy(one)) for one in written] == written
    assert len({policy(one) for one in written}) == len(written)


class Wrong(Policy):
    """A policy with an injected answer."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def spec(self) -> str:
        return "wrong"


class WrongWish(Wrong):
    def wish(self, t: int) -> float:
        return self.answer(t)


class WrongDecision(Wrong):
    needs_confidence = True

    def decide(self, view: View) -> Action:
        return self.answer(view)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (WrongWish(lambda t: 1 / 0), "the policy WrongWish fails: ZeroDivisionError"),
        (WrongWish(lambda t: None), "the policy WrongWish fails: TypeError"),
        (WrongDecision(lambda view: view.nothing), "the policy WrongDecision fails: AttributeError"),
        (WrongDecision(lambda view: Action(view.confidence < 0.5)), "the policy WrongDecision fails: TypeError"),
        (WrongDecision(lambda view: "R"), r"must be Action\.READ or Action\.WRITE, not 'R'"),
        (WrongDecision(lambda view: None), r"must be Action\.READ or Action\.WRITE, not None"),
    ],
)
def test_errors_of_a_custom_class_are_reported_in_training_and_live(
    wrong: WrongDecision | WrongWish, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        wrong.visible(5, 5)
    with pytest.raises(UserError, match=message):
        Rules(np.zeros(1, dtype=bool), wrong).action(0, 0, source_ended=False)


def test_a_wish_of_nan_is_rejected() -> None:
    with pytest.raises(UserError, match="the policy WrongWish fails: ValueError"):
        WrongWish(lambda t: float("nan")).schedule(5, 5)


def test_the_policy_none_has_no_length_limit_from_the_source() -> None:
    """Without source there is no length limit, except against loops. END is allowed, and the signature states it."""
    rules = Rules(np.ones(8, dtype=bool), policy("none"))
    for words, stopped in ((199, False), (200, True)):
        logits = np.zeros(8)
        hypothesis = Hypothesis(pieces=[5], units=words)
        rules.restrict(logits, hypothesis, PrefixState(hypothesis, 5, 0, [], source_ended=False))
        assert bool(np.isfinite(logits).sum() == 1) is stopped
    assert "early-end:allowed" in Condition(policy("none")).signature()
    assert "early-end:masked" in Condition(policy("wait-k:3")).signature()
