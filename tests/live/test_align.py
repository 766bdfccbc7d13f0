"""Word alignment from the probabilities of the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from stacl import api
from stacl.corpora.base import corpus
from stacl.live.align import alignment, surprise
from stacl.support.stepwise import run
from tests.helpers import random_translator


@pytest.mark.slow
def test_a_model_that_copies_aligns_each_word_with_itself(copy_run: Path) -> None:
    translator = api.load(copy_run)
    words = next(source for source, _ in corpus("copy").open("test")).split()
    assert run(alignment(translator, words, words)) == tuple(range(1, len(words) + 1))


def test_surprise_equals_that_of_a_live_session() -> None:
    """Row s of the table equals the result of a session that has read s words."""
    translator = random_translator()
    source, target = ["ba", "be", "bi"], ["bo", "bu"]
    found = run(surprise(translator, source, target))
    assert found.shape == (5, 2)
    alone = run(surprise(translator, source[:2], target))
    assert found[1] == pytest.approx(alone[1], abs=1e-4)
    assert (found > 0).all()


def test_empty_source_or_target() -> None:
    translator = random_translator()
    assert run(alignment(translator, [], ["a", "b"])) == (None, None)
    assert run(alignment(translator, ["a"], [])) == ()
