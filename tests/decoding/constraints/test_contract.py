"""Every constraint leaves an allowed piece, changes nothing else, and is selected by name."""

from __future__ import annotations

import random

import numpy as np
import pytest

import stacl
from stacl.decoding.constraints.base import FOLDER, Constraint, Context, build
from stacl.decoding.hypothesis import Hypothesis
from stacl.live.translator import Translator
from stacl.support import plugins
from stacl.support.errors import UserError
from stacl.text.subwords import END

NAMES = plugins.names(FOLDER)
SOURCES = ["Er wurde 1987 geboren und hat 2.500.000 Euro gewonnen.", "Nein, nein, nein!", "Am 24.12. um 18:30 Uhr"]


@pytest.fixture(scope="module")
def translator() -> Translator:
    return stacl.load("de-en")


@pytest.fixture(scope="module")
def constraints(translator: Translator) -> dict[str, Constraint]:
    context = Context(translator.source_pieces, translator.target_pieces, translator.target_language)
    return {name: build(context, [name])[0] for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", SOURCES)
def test_it_forbids_but_never_everything(
    name: str, text: str, translator: Translator, constraints: dict[str, Constraint]
) -> None:
    source, target = translator.source_pieces, translator.target_pieces
    digits = [target.pieces.index(character) for character in "0123456789,."]
    rng = random.Random(f"{name} {text}")
    for _ in range(200):
        written = Hypothesis()
        choices = digits if rng.random() < 0.5 else range(4, len(target))
        for piece in rng.choices(choices, k=rng.randint(0, 8)):
            written.add(piece, 1, target.ends_word, "word")
        read = source.encode(text.split())[: rng.randint(1, 12)]
        logits = np.array([rng.uniform(-5, 5) for _ in range(len(target))], dtype=np.float32)
        before = logits.copy()
        constraints[name].forbid(logits, written, read)
        allowed = np.isfinite(logits)
        assert allowed.any()
        assert np.array_equal(logits[allowed], before[allowed])


def test_they_are_selected_by_name(translator: Translator) -> None:
    """Without the constraint, a small model drops zeros."""

    def written(names: tuple[str, ...] | None) -> tuple[str, ...]:
        decoding = stacl.Decoding(constraints=names)
        return translator.translate_lines(["Das kostet 1.000.000 Euro."], "wait-k:3", decoding=decoding)[0].target

    assert "1,000,000" in written(None)
    assert written(None) == written(tuple(NAMES)) == written(("numbers",))
    assert "1,000,000" not in written(("repetition",))
    with pytest.raises(UserError, match="did you mean numbers"):
        stacl.Decoding(constraints=("number",))


def test_the_end_stays_possible(translator: Translator, constraints: dict[str, Constraint]) -> None:
    for constraint in constraints.values():
        logits = np.zeros(len(translator.target_pieces), dtype=np.float32)
        constraint.forbid(logits, Hypothesis(), translator.source_pieces.encode(["Hallo."]))
        assert np.isfinite(logits[END])
