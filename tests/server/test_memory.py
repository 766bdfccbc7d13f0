"""A sentence that has just begun takes little memory, and what sessions took is given back."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from stacl.engines import kv_cache
from stacl.live.translator import Translator
from stacl.server import hub, memory
from stacl.text.subwords import BEGIN
from tests.server.client import Client
from tests.server.conftest import serving


def test_room_is_small_at_first_and_grows_in_steps_of_sixteen(models: dict[str, Translator]) -> None:
    engine = models["de-en"].engine
    state = engine.start()
    assert (state.cache.source_room, state.cache.target_room) == (16, 16)
    rooms = set()
    for count in range(1, 101):
        state = engine.read(state, np.array([[4]]))
        rooms.add(state.cache.source_room)
        assert count <= state.cache.source_room < 2 * count + 16
    assert sorted(rooms) == [16, 32, 64, 112]


def test_logits_are_the_same_in_any_room(models: dict[str, Translator], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, pieces = models["de-en"].engine, np.random.default_rng(3).integers(4, 90, 60)

    def logits() -> np.ndarray:
        state, found = engine.start(), []
        for previous, piece in zip([BEGIN, *pieces], pieces, strict=False):
            state, scores = engine.write(engine.read(state, piece[None, None]), np.array([previous]))
            found.append(scores)
        return np.array(found)

    growing = logits()
    start = engine.start()
    monkeypatch.setattr(engine, "start", lambda: start._replace(cache=start.cache.copied(0, 0, 96, 96)))
    assert engine.start().cache.source_room == 144
    assert np.array_equal(logits(), growing)


@pytest.mark.parametrize("needed", [0, 1, 10, 11, 16, 17, 64, 65, 1000])
def test_room_is_a_multiple_of_sixteen(needed: int) -> None:
    room = kv_cache._enough(needed)
    assert room >= max(16, needed)
    assert room % 16 == 0


def test_memory_is_given_back_after_sessions_have_gone(
    models: dict[str, Translator], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    monkeypatch.setattr(hub, "_CHECK_INTERVAL", 0.02)
    monkeypatch.setattr(hub, "_TRIM_INTERVAL", 0.5)
    with serving(models, resume_seconds=0.05) as running:
        # The hub's own times: the thread that trims may start late on a busy machine.
        monkeypatch.setattr(memory, "trim", lambda: given.append(running.hub._trimmed))
        for _ in range(4):
            with Client(running.live) as client:
                assert client.finish()
            while running.hub.sessions:
                time.sleep(0.01)
        deadline = time.monotonic() + 20
        while running.hub._trim_due:
            assert time.monotonic() < deadline, "nothing was given back"
            time.sleep(0.01)
    assert given
    assert all(later - earlier >= 0.5 for earlier, later in itertools.pairwise(given)), "too often"


def test_giving_back_is_possible_or_harmless() -> None:
    memory.trim()
