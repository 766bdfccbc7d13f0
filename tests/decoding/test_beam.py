"""Beams: that of the tail never scores below greedy, the one that looks ahead sees nothing that was not heard."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from stacl.decoding.beam import next_pieces
from stacl.decoding.hypothesis import Hypothesis, PrefixState
from stacl.decoding.options import Decoding
from stacl.decoding.rules import Rules
from stacl.models.batch import collate
from stacl.models.masks import reading
from stacl.policies.base import policy
from stacl.text.sentences import SENTENCE_END
from stacl.text.subwords import END
from tests.helpers import GERMAN, random_translator
from tests.live.test_session import TRANSLATORS, every_model, live


@every_model
def test_the_beam_leaves_alone_what_was_said_before_the_end(name):
    translator = TRANSLATORS[name]
    greedy, _ = live(translator, GERMAN[1], "wait-k:2")
    searched, _ = live(translator, GERMAN[1], "wait-k:2", beam=4)
    assert [w.text for call in greedy[:-1] for w in call] == [w.text for call in searched[:-1] for w in call]


@every_model
def test_looking_ahead_sees_nothing_that_was_not_heard(name):
    """Whatever the speaker goes on to say, and whether he goes on at all, what was said by then is the same."""
    said = []
    for rest in (["Nein."], ["über", "den", "Zaun", "und", "lacht."], []):
        session = TRANSLATORS[name].stream("wait-k:2", decoding=Decoding(beam=3, ahead=3))
        said.append([word.text for heard in GERMAN[1].split()[:4] for word in session.read(heard)])
        for word in rest:
            session.read(word)
        session.close()
        assert list(session.trace.target[: len(said[-1])]) == said[-1]
    assert said[0] == said[1] == said[2] != []


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_beam_makes_room_for_others_after_each_piece(monkeypatch, ahead):
    """A sentence of hundreds of words takes seconds, in which a server has others to turn to."""
    translator = TRANSLATORS["transformer-causal"]
    expected = translator.translate_lines([GERMAN[1]], "wait-k:6", decoding=Decoding(beam=3, ahead=ahead))[0]
    writes, write = [0], translator.engine.write

    def counted(*arguments):
        writes[-1] += 1
        return write(*arguments)

    monkeypatch.setattr(translator.engine, "write", counted)
    session, said = translator.stream("wait-k:6", decoding=Decoding(beam=3, ahead=ahead)), []
    for item in [*GERMAN[1].split(), SENTENCE_END]:
        for word in session.take(item):
            writes.append(0)
            said += [word.text] if word else []
    assert tuple(said) == expected.target
    assert max(writes) == 1 + ahead  # to look ahead for a piece is one step


class Fork:
    """An engine of a known language: after a, b is a little likelier than c, but only c leads to something likely."""

    A, B, C, GOOD = 5, 6, 7, 8

    def start(self, size=1):
        return None

    def read(self, state, pieces):
        return None

    def select(self, state, rows):
        return None

    def write(self, state, previous, visible=None):
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


def test_looking_ahead_takes_the_way_that_leads_somewhere():
    engine, found = Fork(), []
    committed = Hypothesis(pieces=[Fork.A], reads=[1], units=1)
    prefix = PrefixState(committed, Fork.A, read=2, source=[3, 3], source_ended=False)
    for ahead in (0, 1, 2):
        _, logits = engine.write(None, np.array([Fork.A]))
        rules = Rules(np.ones(12, dtype=bool), policy("wait-k:1"), Decoding(beam=2, ahead=ahead))
        found += next_pieces(engine, None, logits, [prefix], rules)
    assert found == [Fork.B, Fork.C, Fork.C]


def tail_score(translator, line: str, trace_pieces, committed: int, chosen) -> float:
    """Mean log probability of the pieces after the committed ones, by the masked pass and the rules, END included."""
    pieces = translator.source_pieces
    batch = collate(
        [(np.array(pieces.encode(line.split())), np.array(trace_pieces, dtype=np.int64))],
        pieces.ends_word,
        pieces.ends_word,
        "word",
    )
    with torch.no_grad():
        logits = translator.engine.model(batch, reading(chosen, batch, random.Random(0)))[0]
    rules, said = translator.rules(chosen), Hypothesis()
    source = [*pieces.encode(line.split()), END]
    for row, piece in zip(logits.numpy(), [*trace_pieces, END], strict=True):
        if len(said.pieces) >= committed:
            rules.restrict(row, said, PrefixState(said, 0, len(line.split()) + 1, source, source_ended=True))
        said.add(piece, 0, pieces.ends_word, "word")
    logs = logits.log_softmax(-1).gather(1, batch.target_out[0][:, None])[:, 0]
    return float(logs[committed:].mean())


def beam_gains(name: str, spec: str) -> list[float]:
    """How much better the beam's tail scores than the greedy one, for each sentence where both ended by themselves."""
    translator, chosen = random_translator(name), policy(spec)
    with torch.no_grad():
        translator.engine.model.bias[END] += 1.5  # more eager to end: a tail cut off at its limit says nothing here
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
def test_the_beam_scores_at_least_as_well_as_greedy(name, spec):
    gains = beam_gains(name, spec)
    assert len(gains) >= 4  # there was something to compare
    assert min(gains) >= -1e-5


@pytest.mark.parametrize("spec", ["full", "wait-k:2"])
def test_the_beam_finds_what_greedy_misses(spec):
    assert max(gain for name in TRANSLATORS for gain in beam_gains(name, spec)) > 1e-3


def test_a_wait_beyond_the_source_is_full_beam_search():
    translator = TRANSLATORS["transformer-causal"]
    for line in GERMAN[:3]:
        full = translator.translate_lines([line], "full", decoding=Decoding(beam=4))[0]
        assert translator.translate_lines([line], "wait-k:40", decoding=Decoding(beam=4))[0].target == full.target
        assert (
            translator.translate_lines([line], "full", decoding=Decoding(beam=1))[0].target
            == translator.translate_lines([line], "full")[0].target
        )
