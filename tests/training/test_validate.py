"""Validation figures depend on the weights, not on the batch size."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from stacl.config import Config, TrainSettings
from stacl.models.batch import Encoded, epoch_batches
from stacl.policies.base import policy
from stacl.training.prepare import Prepared
from stacl.training.validate import validate
from tests.helpers import ENDS_WORD, random_pieces, tiny_models


@pytest.mark.parametrize("spec", ["wait-k:1-3", "wait-k:1-inf", "wait-k:2"])
def test_the_loss_does_not_depend_on_the_size_of_batches(tmp_path: Path, spec: str) -> None:
    rng = random.Random(1)
    pairs = [(random_pieces(rng, rng.randint(1, 9)), random_pieces(rng, rng.randint(1, 9))) for _ in range(60)]
    data = Encoded.write(tmp_path / "valid", ((source.tolist(), target.tolist()) for source, target in pairs))
    pieces = SimpleNamespace(ends_word=ENDS_WORD)
    prepared = Prepared(pieces, pieces, data, data, [])  # type: ignore[arg-type]
    model = tiny_models()["transformer-causal"]
    losses = [
        validate(model, prepared, Config(train=TrainSettings(budget=budget, bleu_lines=0)), policy(spec)).loss
        for budget in (1, 300, 10_000)
    ]
    assert len(epoch_batches(data.lengths, 1, 0, 0)) == 60
    assert losses == pytest.approx([losses[0]] * 3, rel=1e-6)
