"""Beam search: the tail never scores below greedy, and the look-ahead sees only the source that was read."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from stacl.decoding.beam import next_pieces
from stacl.decoding.hypothesis import Hypothesis, PrefixState
from stacl.decoding.options import Decoding
from stacl.decoding.rules import Rules
from stacl.live.translator import Translator
from stacl.models.batch import collate
from stacl.models.masks import reading
from stacl.policies.base import Policy, policy
from stacl.text.sentences import SENTENCE_END, SentenceEnd
from stacl.text.subwords import END
from tests.helpers import GERMAN, model_of, random_translator
from tests.live.test_session import TRANSLATORS, every_model, live


@every_model
def test_the_beam_does_not_change_words_before_the_end(name: str) -> None:
    translator = TRANSLATORS[name]
    greedy, _ = live(translator, GERMAN[1], "wait-k:2")
    searched, _ = live(translator, GERMAN[1], "wait-k:2", beam=4)
    assert [w.text for call in greedy[:-1] for w in call] == [w.text for call in searched[:-1] for w in call]


@every_model
def test_the_look_ahead_does_not_see_unread_source(name: str) -> None:
    """The output so far does not depend on the rest of the source."""
    written = []
    for rest in (["Nein."], ["über", "den", "Zaun", "und", "lacht."], []):
        session = TRANSLATORS[name].stream("wait-k:2", decoding=Decoding(beam=3, ahead=3))
        written.append([word.text for source in GERMAN[1].split()[:4] for word in session.read(source)])
        for word in rest:
            session.read(word)
        session.close()
        assert list(session.trace.target[: len(written[-1])]) == written[-1]
    assert written[0] == written[1] == written[2] != []


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_beam_yields_after_each_piece(monkeypatch: pytest.MonkeyPatch, ahead: int) -> None:
    """A sentence of hundreds of words takes seconds, in which a server must serve other sessions."""
    translator = TRANSLATORS["transformer-causal"]
    expected = translator.translate_lines([GERMAN[1]], "wait-k:6", decoding=Decoding(beam=3, ahead=ahead))[0]
    writes, write = [0], translator.engine.write

    def counted(*arguments: Any) -> Any:
        writes[-1] += 1
        return write(*arguments)

    monkeypatch.setattr(translator.engine, "write", counted)
    session, written = translator.stream("wait-k:6", decoding=Decoding(beam=3, ahead=ahead)), []
    items: list[str | SentenceEnd] = [*GERMAN[1].split(), SENTENCE_END]
    for item in items:
        for word in session.take(item):
            writes.append(0)
            written += [word.text] if word else []
    assert tuple(written) == expected.target
    assert max(writes) == 1 + ahead  # the look-ahead for one piece is one step


class Fork:
    """An engine with known probabilities: after a, b is a little likelier than c, but only c has a likely successor."""

    A, B, C, GOOD = 5, 6, 7, 8

    def start(self, size: int = 1) -> None:
        return None

    def read(self, state: Any, pieces: np.ndarray) -> None:
        return None

    def select(self, state: Any, rows: np.ndarray) -> None:
        return None

    def write(self, state: Any, previous: np.ndarray, visible: np.ndarray | None = None) -> tuple[None, np.ndarray]:
        chances = np.full((len(previous), 12), 1e-3)
        for row, piece in zip(chances, previous, strict=True):
            if piece == self.A:
                row[[self.B, self.C]] = 0.55, 0.44
            elif piece == self.C:
                row[self.GOOD] = 0.98
            elif piece == self.B:
                row[:] = 1 / 12
            else:
                row[self.A] = 0.98
        return None, np.log(chances)


def test_the_look_ahead_finds_the_better_branch() -> None:
    engine, found = Fork(), []
    committed = Hypothesis(pieces=[Fork.A], reads=[1], units=1)
    prefix = PrefixState(committed, Fork.A, read=2, source=[3, 3], source_ended=False)
    for ahead in (0, 1, 2):
        _, logits = engine.write(None, np.array([Fork.A]))
        rules = Rules(np.ones(12, dtype=bool), policy("wait-k:1"), Decoding(beam=2, ahead=ahead))
        found += next_pieces(engine, None, logits, [prefix], rules)
    assert found == [Fork.B, Fork.C, Fork.C]


def tail_score(translator: Translator, line: str, trace_pieces: Sequence[int], committed: int, chosen: Policy) -> float:
    """Return the mean log probability of the pieces after the committed ones, including END, by the masked pass."""
    pieces = translator.source_pieces
    batch = collate(
        [(np.array(pieces.encode(line.split())), np.array(trace_pieces, dtype=np.int64))],
        pieces.ends_word,
        pieces.ends_word,
        "word",
    )
    with torch.no_grad():
        logits = model_of(translator.engine)(batch, reading(chosen, batch, random.Random(0)))[0]
    rules, written = translator.rules(chosen), Hypothesis()
    source = [*pieces.encode(line.split()), END]
    for row, piece in zip(logits.numpy(), [*trace_pieces, END], strict=True):
        if len(written.pieces) >= committed:
            rules.restrict(row, written, PrefixState(written, 0, len(line.split()) + 1, source, source_ended=True))
        written.add(piece, 0, pieces.ends_word, "word")
    logs = logits.log_softmax(-1).gather(1, batch.target_out[0][:, None])[:, 0]
    return float(logs[committed:].mean())


def beam_gains(name: str, spec: str) -> list[float]:
    """Return how much better the beam scores than greedy, for each sentence where both ended without the limit."""
    translator, chosen = random_translator(name), policy(spec)
    with torch.no_grad():
        model_of(translator.engine).bias[END] += (
            1.5  # END is likelier: a tail that is cut at the limit cannot be compared
        )
    ends_word, gains = translator.source_pieces.ends_word, []
    for line in GERMAN:
        found = []
        for beam in (1, 4):
            session = translator.stream(chosen, decoding=Decoding(beam=beam))
            for word in line.split():
                session.read(word)
            sentence = session._sentence
            committed = len(sentence._hypothesis.pieces)
            session.close()
            found.append((sentence._hypothesis.pieces, committed))
        (greedy, before), (searched, same) = found
        assert before == same
        assert greedy[:before] == searched[:before]
        limit = 2 * (len(line.split()) + 1) + 20
        if max(ends_word[greedy].sum(), ends_word[searched].sum()) < limit:
            scores = [tail_score(translator, line, pieces, before, chosen) for pieces in (greedy, searched)]
            gains.append(scores[1] - scores[0])
    return gains


@pytest.mark.parametrize("spec", ["full", "wait-k:2", "wait-k:30"])
@every_model
def test_the_beam_scores_at_least_as_well_as_greedy(name: str, spec: str) -> None:
    gains = beam_gains(name, spec)
    assert len(gains) >= 4  # enough sentences to compare
    assert min(gains) >= -1e-5


@pytest.mark.parametrize("spec", ["full", "wait-k:2"])
def test_the_beam_finds_what_greedy_misses(spec: str) -> None:
    assert max(gain for name in TRANSLATORS for gain in beam_gains(name, spec)) > 1e-3


def test_a_wait_beyond_the_source_is_full_beam_search() -> None:
    translator = TRANSLATORS["transformer-causal"]
    for line in GERMAN[:3]:
        full = translator.translate_lines([line], "full", decoding=Decoding(beam=4))[0]
        assert translator.translate_lines([line], "wait-k:40", decoding=Decoding(beam=4))[0].target == full.target
        assert (
            translator.translate_lines([line], "full", decoding=Decoding(beam=1))[0].target
            == translator.translate_lines([line], "full")[0].target
        )
