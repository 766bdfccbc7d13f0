"""SPEC 9 through the live session: live = masked = batched, append-only, for every model, policy, unit and beam."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stacl.decoding.engine import Engine
from stacl.decoding.options import Decoding
from stacl.live.sentence import Written
from stacl.live.session import Session
from stacl.live.translator import Translator
from stacl.models.batch import collate
from stacl.models.masks import reading
from stacl.policies.base import Policy, policy
from stacl.support.errors import UserError
from stacl.text.subwords import END
from stacl.traces.trace import Trace
from tests.helpers import GERMAN, model_of, random_translator, tiny_models

TRANSLATORS = {name: random_translator(name) for name in tiny_models()}
POLICIES = ["full", "none", "wait-k:1", "wait-k:3", "wait-k:2,c=0.25", "wait-k:2,c=-1/4", "wait-k:30"]
every_model = pytest.mark.parametrize("name", TRANSLATORS)
every_policy = pytest.mark.parametrize("spec", POLICIES)
both_units = pytest.mark.parametrize("unit", ["word", "piece"])
beams = pytest.mark.parametrize(
    "search", [{"beam": 1}, {"beam": 3}, {"beam": 3, "ahead": 2}], ids=["greedy", "beam", "ahead"]
)


class Spy:
    """An engine that records its results."""

    def __init__(self, engine: Engine[Any]) -> None:
        self.engine = engine
        self.logits: list[np.ndarray] = []
        self.start, self.read, self.select = engine.start, engine.read, engine.select

    def write(self, state: Any, previous: np.ndarray, visible: np.ndarray | None = None) -> tuple[Any, np.ndarray]:
        state, logits = self.engine.write(state, previous, visible)
        self.logits.append(logits.copy())
        return state, logits


def live(translator: Translator, line: str, spec: str | Policy, **options: Any) -> tuple[list[list[Written]], Session]:
    """Feed a sentence to a session. Return the words of each call, and the session."""
    session = translator.stream(spec, decoding=Decoding(**options))
    said = [session.read(word) for word in line.split()]
    said.append(session.close())
    return said, session


@both_units
@every_policy
@every_model
def test_live_logits_are_the_masked_ones(name: str, spec: str, unit: str) -> None:
    translator = random_translator(name)
    translator.engine = Spy(translator.engine)
    chosen = policy(spec, unit)
    session = translator.stream(chosen)
    for word in GERMAN[0].split():
        session.read(word)
    hypothesis = session._sentence._hypothesis
    session.close()
    pieces = translator.source_pieces
    source = np.array(pieces.encode(GERMAN[0].split()))
    batch = collate([(source, np.array(hypothesis.pieces, dtype=np.int64))], pieces.ends_word, pieces.ends_word, unit)
    with torch.inference_mode():
        masked = model_of(translator.engine.engine)(batch, reading(chosen, batch, random.Random(0)))[0].numpy()
    spoken = np.concatenate(translator.engine.logits)
    assert len(spoken) == len(masked)
    np.testing.assert_allclose(spoken, masked, atol=1e-5, rtol=1e-5)


@beams
@both_units
@every_policy
@every_model
def test_batched_decoding_writes_the_same(name: str, spec: str, unit: str, search: dict[str, Any]) -> None:
    translator, chosen = TRANSLATORS[name], policy(spec, unit)
    lines = [GERMAN[0], GERMAN[4], "", "Nein.", "– ☺", f"☺ – Ein ☺ {'x' * 99}"]
    batched = translator.translate_lines(lines, chosen, decoding=Decoding(**search), size=4)
    for line, trace in zip(lines, batched, strict=True):
        _, session = live(translator, line, chosen, **search)
        assert session.trace.target == trace.target
        assert session.trace.delays == trace.delays


@beams
@every_policy
@every_model
def test_append_only(name: str, spec: str, search: dict[str, Any]) -> None:
    """The words of all calls are the trace, and delays never exceed the words that had arrived."""
    said, session = live(TRANSLATORS[name], GERMAN[1], spec, **search)
    words = [word for call in said for word in call]
    assert tuple(word.text for word in words) == session.trace.target
    for heard, call in enumerate(said, start=1):
        assert all(word.delay <= heard for word in call)
    assert [word.delay for word in words] == sorted(word.delay for word in words)


def test_delays_follow_the_policy() -> None:
    _, session = live(TRANSLATORS["transformer-causal"], GERMAN[0], "wait-k:3")
    trace = session.trace
    assert list(trace.delays) == policy("wait-k:3").schedule(len(trace.source), len(trace.target))


TEXT = "Ein Mann schläft. Der 3. Hund, z. B. ein „großer“ 😀 – שלום مرحبا 中文字！\n\nZwei\tFrauen \u00a0laufen\r\nNein"


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, len(TEXT.encode())), max_size=40), segment=st.booleans())
def test_any_chunks_of_bytes_give_the_same_words(cuts: list[int], segment: bool) -> None:
    translator = TRANSLATORS["transformer-causal"]
    expected = translator.stream("wait-k:2", segment=segment)
    whole = expected.feed(TEXT) + expected.close()
    raw = TEXT.encode()
    places = [0, *sorted(cuts), len(raw)]
    session = translator.stream("wait-k:2", segment=segment)
    said = [word for start, end in itertools.pairwise(places) for word in session.feed(raw[start:end])]
    said += session.close()
    assert [(w.text, w.delay, w.sentence) for w in said] == [(w.text, w.delay, w.sentence) for w in whole]
    assert [trace.source for trace in session.traces] == [trace.source for trace in expected.traces]


def test_no_source_word_is_lost_or_duplicated_at_sentence_ends() -> None:
    translator = TRANSLATORS["transformer-causal"]
    session = translator.stream("wait-k:2", segment=True)
    text = " ".join(GERMAN * 3)
    session.feed(text)
    session.close()
    assert [word for trace in session.traces for word in trace.source] == text.split()
    assert len(session.traces) == len(GERMAN) * 3


def test_the_policy_can_change_mid_sentence() -> None:
    translator, words = TRANSLATORS["transformer-causal"], GERMAN[1].split()
    session = translator.stream("wait-k:6")
    before = [word for source in words[:6] for word in session.read(source)]
    assert len(before) == 1
    at_once = session.change("wait-k:2")
    assert len(at_once) == 4  # words 2 .. 5 are due, after six source words
    assert [word.delay for word in at_once] == [6, 6, 6, 6]
    assert len(session.read(words[6])) == 1
    session.change("full")
    assert [session.read(source) for source in words[7:]] == [[]] * len(words[7:])
    session.close()
    assert session.trace.target[:5] == tuple(word.text for word in before + at_once)
    session = translator.stream("wait-k:2")
    session.change("wait-k:2,unit=piece")  # nothing was read yet
    session.read(words[0])
    with pytest.raises(UserError, match="unit cannot change within a sentence"):
        session.change("wait-k:2")


def test_gaps_separate_sentences() -> None:
    session = TRANSLATORS["transformer-causal"].stream("wait-k:1", segment=True)
    said = session.feed("Ein Mann schläft. Der Hund bellt laut. ") + session.close()
    assert {word.sentence for word in said} == {0, 1}
    assert "".join(word.gap + word.text for word in said) == " ".join(word.text for word in said)


def test_the_lag_is_counted_in_the_current_sentence() -> None:
    session = TRANSLATORS["transformer-causal"].stream("wait-k:3", segment=True)
    behind = []
    for word in ["Ein", "Mann", "schläft.", "Der", "Hund", "bellt", "laut."]:
        session.read(word)
        behind.append(session.behind)
    assert behind == [1, 2, 0, 1, 2, 2, 0]


@beams
@every_model
def test_a_copy_is_independent(name: str, search: dict[str, Any]) -> None:
    translator, words = TRANSLATORS[name], GERMAN[1].split()
    expected = live(translator, GERMAN[1], "wait-k:2", **search)[1].trace.target
    session = translator.stream("wait-k:2", decoding=Decoding(**search))
    for word in words[:4]:
        session.read(word)
    other = session.copy()
    for word in GERMAN[2].split():
        other.read(word)
    other.close()
    for word in words[4:]:
        session.read(word)
    session.close()
    assert session.trace.target == expected
    assert other.trace.target != expected


def test_sessions_do_not_disturb_each_other() -> None:
    translator = TRANSLATORS["transformer-causal"]
    alone = [live(translator, line, "wait-k:2")[1].trace.target for line in GERMAN]
    sessions = [translator.stream("wait-k:2") for _ in GERMAN]
    sentences = [line.split() for line in GERMAN]
    for step in range(max(map(len, sentences))):
        for session, words in zip(sessions, sentences, strict=True):
            if step < len(words):
                session.read(words[step])
    for session in sessions:
        session.close()
    assert [session.trace.target for session in sessions] == alone


def test_asynchronous() -> None:
    translator = TRANSLATORS["transformer-causal"]

    async def speaker() -> AsyncIterator[str]:
        for chunk in ("Ein Ma", "nn schl", "äft. Der Hund ", "spielt."):
            yield chunk

    async def listener() -> list[str]:
        return [word.text async for word in translator.interpret(speaker(), "wait-k:2")]

    session = translator.stream("wait-k:2", segment=True)
    expected = session.feed("Ein Mann schläft. Der Hund spielt.") + session.close()
    assert asyncio.run(listener()) == [word.text for word in expected]


def test_a_closed_session_is_reported() -> None:
    session = TRANSLATORS["transformer-causal"].stream("wait-k:1")
    session.read("Ein")
    assert session.close()
    assert session.close() == []
    with pytest.raises(ValueError, match="closed"):
        session.read("Mann")
    with pytest.raises(UserError, match="beam must be"):
        TRANSLATORS["transformer-causal"].stream("wait-k:1", decoding=Decoding(beam=0))
    with pytest.raises(UserError, match="requires a beam of 2 or more"):
        TRANSLATORS["transformer-causal"].translate_lines(["Ja."], "wait-k:1", decoding=Decoding(ahead=2))
    for size in (0, -5):
        with pytest.raises(UserError, match=f"at least 1, not {size}"):
            TRANSLATORS["transformer-causal"].translate_lines(["Ja."], size=size)
    with pytest.raises(UserError, match="look-ahead must be"):
        TRANSLATORS["transformer-causal"].stream("wait-k:1", decoding=Decoding(beam=2, ahead=-1))


def test_an_early_end_only_if_allowed() -> None:
    """A model that always prefers END: masked, it continues to the end of the source; otherwise it writes nothing."""
    translator = random_translator()
    with torch.no_grad():
        model_of(translator.engine).bias[END] = 100.0
    masked = translator.translate_lines(GERMAN, "wait-k:2")
    free = translator.translate_lines(GERMAN, "wait-k:2", decoding=Decoding(early_end=True))
    assert all(len(trace.target) == len(trace.source) - 1 for trace in masked)
    assert all(trace.target == () for trace in free)


def test_a_policy_that_never_reads_is_forced_to_read() -> None:
    trace = TRANSLATORS["transformer-causal"].translate_lines(GERMAN[:1], policy(lambda t: 1))[0]
    assert trace.delays[-1] == len(trace.source)


def test_text_without_letters_is_copied() -> None:
    """A model invents words if it gets only marks, so marks wait for a word or for the end."""
    translator = TRANSLATORS["transformer-causal"]
    session = translator.stream("wait-k:1")
    assert session.read("...") == []
    assert session.change("wait-k:2") == []
    assert session.read("😀") == []
    assert [(word.text, word.delay, word.gap) for word in session.end()] == [("...", 2, ""), ("😀", 2, " ")]
    assert session.trace.target == session.trace.source == ("...", "😀")
    session.change("wait-k:1")
    assert session.read("–") == []
    first, *_ = session.read("Nein.")
    assert first.delay == 2  # the policy alone would write it after the dash


@pytest.mark.parametrize("copied", ["😀", "https://example.org/a_b", "www.example.org,", "me@example.org", "x" * 99])
def test_unknown_words_are_copied(copied: str) -> None:
    """It changes nothing else, and keeps about the same position."""
    translator = TRANSLATORS["transformer-causal"]
    words = GERMAN[0].split()
    _, alone = live(translator, GERMAN[0], "wait-k:2")
    for position in range(len(words) + 1):
        said, session = live(translator, " ".join([*words[:position], copied, *words[position:]]), "wait-k:2")
        others = [word for call in said for word in call if word.text != copied]
        assert tuple(word.text for word in others) == alone.trace.target
        number = session.trace.target.index(copied)
        assert number == min(position, len(alone.trace.target))
        assert session.trace.delays[number] > position  # nothing is written before its source word was read
        heard_more = [word.delay > position for word in others]
        assert [word.delay - more for word, more in zip(others, heard_more, strict=True)] == list(alone.trace.delays)


def test_a_pictograph_may_follow_a_word_without_a_space() -> None:
    translator = TRANSLATORS["transformer-causal"]
    _, plain = live(translator, "Ein Kind isst ein Eis.", "wait-k:2")
    _, session = live(translator, "Ein Kind👩‍👩‍👧 isst ein Eis.😀", "wait-k:2")
    pictures = {"👩‍👩‍👧", "😀"}
    assert pictures < set(session.trace.target)
    assert tuple(word for word in session.trace.target if word not in pictures) == plain.trace.target
    assert session.trace.source[1] == "Kind👩‍👩‍👧"


def test_a_bullet_is_not_a_word_but_an_arrow_in_a_sentence_may_be() -> None:
    translator = random_translator()
    heard = translator.source_sentence()
    assert [heard.add(word) for word in ("•", "→", "Ein", "+", "Mann")] == ["", "", "Ein", "", "Mann"]
    known = translator.source_sentence()
    known._vocabulary = SimpleNamespace(  # type: ignore[assignment]
        encode_word=lambda word: (1,), spells_in_bytes=lambda word: False
    )
    words = ["•", "→", "–", "Ein", "→", "Mann"]
    assert [known.add(word) for word in words] == ["", "", "", *words[3:]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n \n",
        "x" * 10_000,
        "\x00\x07 \x1b[31m",
        "😀 👩‍👩‍👧 🇩🇪",
        "שלום עולם مرحبا",
        "我们在学习机器翻译。",
        b"sch\xf6n \xff\xfe \xf0\x9f",
    ],
)
def test_odd_text_has_a_defined_result(text: bytes | str) -> None:
    session = TRANSLATORS["transformer-causal"].stream("wait-k:1", segment=True)
    session.feed(text)
    session.close()
    heard = "".join(word for trace in session.traces for word in trace.source)
    plain = text if isinstance(text, str) else text.decode("utf-8", "replace")
    visible = "".join(c for c in plain if (c.isprintable() or c == "\u200d") and not c.isspace())
    assert heard == visible


def test_a_very_long_sentence() -> None:
    """Without an end mark it is split by length, and no word is lost."""
    translator = TRANSLATORS["transformer-causal"]
    session = translator.stream("wait-k:1", segment=True)
    count = 0

    def heard(trace: Trace) -> None:
        nonlocal count
        count += len(trace.source)
        assert len(trace.source) <= 80

    session._on_trace = heard
    for number in range(500):
        session.read(f"Hund{number % 7}")
    session.close()
    assert count == 500
