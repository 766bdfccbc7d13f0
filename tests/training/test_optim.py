"""Learning-rate schedules."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Literal

import pytest

from stacl.config import TrainSettings
from stacl.training.optim import rate_at

HELD = TrainSettings(rate=1e-3, warmup=10, schedule="constant", steps=100, cooldown=20)


def test_a_held_rate_is_cooled_down_over_the_last_updates() -> None:
    rates = [rate_at(step, HELD) for step in range(1, 101)]
    assert rates[4] == pytest.approx(5e-4)
    assert set(rates[9:80]) == {1e-3}
    assert rates[89] == pytest.approx(1e-3 * (0.01 + 0.99 * 10 / 20))
    assert rates[99] == pytest.approx(1e-5)
    assert all(earlier > later for earlier, later in itertools.pairwise(rates[80:]))


def test_more_steps_delay_the_cooldown() -> None:
    assert rate_at(100, dataclasses.replace(HELD, steps=200)) == 1e-3


@pytest.mark.parametrize("schedule", ["inverse-sqrt", "cosine", "linear", "constant"])
def test_without_cooldown_nothing_changes_but_the_schedule(
    schedule: Literal["inverse-sqrt", "cosine", "linear", "constant"],
) -> None:
    plain = dataclasses.replace(HELD, schedule=schedule, cooldown=0)
    cooled = dataclasses.replace(plain, cooldown=20)
    assert [rate_at(step, plain) for step in range(1, 81)] == [rate_at(step, cooled) for step in range(1, 81)]
    assert rate_at(95, cooled) < rate_at(95, plain)
