"""Adaptive wait-k: decisions depend on the model's probabilities, in live and batched decoding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from stacl import load
from stacl.decoding.options import Decoding
from stacl.live.translator import Translator
from stacl.metrics.al import average_lagging
from stacl.models.batch import collate
from stacl.models.masks import reading
from stacl.policies.base import Action, Policy, View, policy
from stacl.policies.confidence import Confidence
from stacl.runs import pretrained
from stacl.support.errors import UserError
from stacl.traces.trace import Trace
from tests.helpers import GERMAN, model_of, random_translator, tiny_models

TRANSLATORS = {name: random_translator(name) for name in tiny_models()}
LOW_THRESHOLDS = "confidence:1-4,sure=0.3,unsure=0.1"  # a random model sometimes reaches these thresholds
every_model = pytest.mark.parametrize("name", TRANSLATORS)
both_units = pytest.mark.parametrize("unit", ["word", "piece"])


def live_output(
    translator: Translator, line: str, chosen: str | Policy, **search: Any
) -> tuple[list[tuple[str, ...]], Trace]:
    session = translator.stream(chosen, decoding=Decoding(**search))
    written = [tuple(word.text for word in session.read(word)) for word in line.split()]
    session.close()
    return written, session.trace


def test_threshold_falls_with_the_lag() -> None:
    chosen = policy("confidence:2-5,sure=0.9,unsure=0.3")
    assert isinstance(chosen, Confidence)
    assert [round(chosen.threshold(lag), 6) for lag in (2, 3, 4)] == [0.9, 0.6, 0.3]
    decided = {
        (lag, sure): chosen.decide(View(read=7 + lag, written=7, ended=False, confidence=sure))
        for lag in range(1, 7)
        for sure in (0.0, 0.29, 0.31, 0.59, 0.61, 0.89, 0.91, 1.0)
    }
    wrote = {place for place, action in decided.items() if action is Action.WRITE}
    least = {2: 0.9, 3: 0.6, 4: 0.3, 5: 0.0, 6: 0.0}
    assert wrote == {(lag, sure) for lag, sure in decided if lag in least and sure >= least[lag]}
    assert chosen.decide(View(read=3, written=3, ended=True)) is Action.WRITE


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("confidence", "minimum and a maximum lag"),
        ("confidence:3", "minimum and a maximum lag"),
        ("confidence:2-inf", "must be finite"),
        ("confidence:1-" + "9" * 5000, "whole number from 1"),
        ("confidence:-2-3", "minimum and a maximum lag"),
        ("confidence:0-3", "whole number from 1"),
        ("confidence:4-2", "confidence:4-2 is a decreasing range"),
        ("confidence:1-4,sure=high", "sure must be a probability"),
        ("confidence:1-4,sure=nan", "0 <= unsure <= sure <= 1"),
        ("confidence:1-4,sure=0.2,unsure=0.3", "0 <= unsure <= sure <= 1"),
        ("confidence:1-4,sure=1.2", "0 <= unsure <= sure <= 1"),
        ("confidence:1-4,rho=1", "no option 'rho'"),
    ],
)
def test_mistakes_are_reported(spec: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        policy(spec)


@both_units
@every_model
def test_at_both_ends_it_is_wait_k(name: str, unit: str) -> None:
    """With threshold 0 it equals wait-k at the minimum lag, with threshold 1 at the maximum lag."""
    for spec, same in (
        ("confidence:1-3,sure=0,unsure=0", "wait-k:1"),
        ("confidence:1-3,sure=1,unsure=1", "wait-k:3"),
        ("confidence:2-2", "wait-k:2"),
    ):
        for line in GERMAN[:3]:
            adaptive = live_output(TRANSLATORS[name], line, policy(spec, unit))
            fixed = live_output(TRANSLATORS[name], line, policy(same, unit))
            assert adaptive[0] == fixed[0]
            assert (adaptive[1].target, adaptive[1].delays) == (fixed[1].target, fixed[1].delays)


@pytest.mark.parametrize("search", [{"beam": 1}, {"beam": 3}, {"beam": 3, "ahead": 2}], ids=str)
@both_units
@every_model
def test_batched_decoding_equals_live(name: str, unit: str, search: dict[str, Any]) -> None:
    translator, chosen = TRANSLATORS[name], policy(LOW_THRESHOLDS, unit)
    lines = [*GERMAN[:3], "", "Nein."]
    batched = translator.translate_lines(lines, chosen, decoding=Decoding(**search), size=5)
    for line, trace in zip(lines, batched, strict=True):
        _, alone = live_output(translator, line, chosen, **search)
        assert (alone.target, alone.delays) == (trace.target, trace.delays)


@both_units
@every_model
def test_lags_vary_within_their_limits(name: str, unit: str) -> None:
    lags = set()
    for line in GERMAN:
        session = TRANSLATORS[name].stream(policy(LOW_THRESHOLDS, unit))
        for word in line.split():
            session.read(word)
        written = session._sentence._hypothesis
        whole = [
            i for i in range(len(written.pieces)) if unit == "piece" or i == 0 or _ends(name, written.pieces[i - 1])
        ]
        lags |= {written.reads[i] - number for number, i in enumerate(whole)}
    assert lags <= {1, 2, 3, 4}
    assert len(lags) > 1


def _ends(name: str, piece: int) -> bool:
    return bool(TRANSLATORS[name].target_pieces.ends_word[piece])


@both_units
@every_model
def test_live_logits_are_the_masked_ones(name: str, unit: str) -> None:
    """SPEC 9.1: the reads before each piece, given to the training pass as a list, yield the same logits."""
    translator = random_translator(name)
    engine, kept = translator.engine, {}
    session = translator.stream(policy(LOW_THRESHOLDS, unit))

    class Spy:
        start, read, select = engine.start, engine.read, engine.select

        def write(self, state: Any, previous: np.ndarray, visible: np.ndarray | None = None) -> tuple[Any, np.ndarray]:
            state, logits = engine.write(state, previous, visible)
            kept[len(session._sentence._hypothesis.pieces)] = logits[0].copy()  # the last call counts
            return state, logits

    translator.engine = Spy()
    words = GERMAN[1].split()
    for word in words:
        session.read(word)
    written = session._sentence._hypothesis  # source still open: a list cannot express waiting for the end
    pieces = translator.source_pieces
    source, target = np.array(pieces.encode(words)), np.array(written.pieces, dtype=np.int64)
    batch = collate([(source, target)], pieces.ends_word, pieces.ends_word, unit)
    steps = [
        read for i, read in enumerate(written.reads) if unit == "piece" or i == 0 or _ends(name, written.pieces[i - 1])
    ]
    with torch.inference_mode():
        schedule = reading(policy(steps, unit), batch, None)  # type: ignore[arg-type]
        masked = model_of(engine)(batch, schedule)[0].numpy()
    assert len(written.pieces) > 3
    for position in range(len(written.pieces)):
        np.testing.assert_allclose(kept[position], masked[position], atol=1e-5, rtol=1e-5)


@every_model
def test_no_peeking(name: str) -> None:
    """SPEC 9.2: a different continuation does not change earlier output."""
    translator = TRANSLATORS[name]
    for common in range(1, 8):
        one = GERMAN[1].split()
        other = one[:common] + GERMAN[2].split()
        first, _ = live_output(translator, " ".join(one), LOW_THRESHOLDS)
        second, _ = live_output(translator, " ".join(other), LOW_THRESHOLDS)
        assert first[:common] == second[:common]


@pytest.mark.parametrize("beam", [1, 4])
def test_a_shipped_model_has_a_lag_between_the_limits(beam: int) -> None:
    """With the fast engine, whose states share memory: discarded steps must not change later output."""
    translator = load(pretrained.folder("photos-de-en"))
    batched = translator.translate_lines(GERMAN, "confidence:1-6", decoding=Decoding(beam=beam))
    for line, trace in zip(GERMAN, batched, strict=True):
        _, alone = live_output(translator, line, "confidence:1-6", beam=beam)
        assert (alone.target, alone.delays) == (trace.target, trace.delays)
    lag = {spec: _mean_lag(translator, spec) for spec in ("wait-k:1", "confidence:1-6", "wait-k:6")}
    assert lag["wait-k:1"] + 0.3 < lag["confidence:1-6"] < lag["wait-k:6"] - 0.3


def _mean_lag(translator: Translator, spec: str) -> float:
    traces = translator.translate_lines(GERMAN, spec)
    return float(np.mean([average_lagging(one.delays, one.source_length, len(one.target)) for one in traces]))


def test_a_session_can_change_to_it_and_back() -> None:
    translator, words = TRANSLATORS["transformer-causal"], GERMAN[1].split()
    session = translator.stream("confidence:1-4,sure=1,unsure=1")
    assert [session.read(word) for word in words[:3]] == [[], [], []]
    at_once = session.change("wait-k:1")
    assert [word.delay for word in at_once] == [3, 3, 3]
    session.change("confidence:1-9,sure=1,unsure=1")
    assert [session.read(word) for word in words[3:8]] == [[]] * 5
    twin = session.copy()
    rest = [word.text for word in session.close()]
    assert rest
    assert [word.text for word in twin.close()] == rest
