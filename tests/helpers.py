"""Small things that several tests need: random batches, tiny models, the folder of real data."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
import torch

from stacl.batches import Batch, collate
from stacl.models.base import Model
from stacl.models.transformer import Transformer
from stacl.text import BEGIN

SHARED = Path(__file__).resolve().parents[2] / "shared"
VOCABULARY = 40
# Every third piece ends a word, so that words have one to several pieces.
ENDS_WORD = np.arange(VOCABULARY) % 3 == 0


def shared(name: str) -> Path:
    """A folder of real data beside the project. Without it a test is skipped, but never in CI."""
    folder = SHARED / name
    if not folder.exists():
        message = f"the shared data folder {name} is not beside the project"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return folder


def random_pieces(rng: random.Random, words: int) -> np.ndarray:
    """Pieces of whole words: each has up to two inner pieces and one that ends it."""
    inner = [p for p in range(4, VOCABULARY) if not ENDS_WORD[p]]
    final = [p for p in range(4, VOCABULARY) if ENDS_WORD[p]]
    pieces: list[int] = []
    for _ in range(words):
        pieces += [rng.choice(inner) for _ in range(rng.randint(0, 2))] + [rng.choice(final)]
    return np.array(pieces, dtype=np.int64)


def random_batch(unit: str, seed: int = 0, sizes: tuple[tuple[int, int], ...] = ((5, 7), (3, 2), (6, 4), (1, 5))) -> Batch:
    rng = random.Random(seed)
    pairs = [(random_pieces(rng, source), random_pieces(rng, target)) for source, target in sizes]
    return collate(pairs, ENDS_WORD, ENDS_WORD, unit)


def tiny_models() -> dict[str, Model]:
    """One small random model for every kind and mode."""
    torch.manual_seed(1)
    size = dict(width=16, inner=32, heads=2, encoder_layers=2, decoder_layers=2)
    return {
        "transformer-causal": Transformer(VOCABULARY, VOCABULARY, **size, encoder="causal").eval(),
        "transformer-prefix": Transformer(VOCABULARY, VOCABULARY, **size, encoder="prefix").eval(),
    }


def row_of(batch: Batch, row: int) -> tuple[list[int], list[int], list[int]]:
    """Source pieces with END and their units, and the target pieces that the model is fed (BEGIN first)."""
    real = int((batch.source_units[row] < 2**30).sum())
    fed = int(batch.real[row].sum())
    target = batch.target_in[row, :fed].tolist()
    assert target[0] == BEGIN
    return batch.source[row, :real].tolist(), batch.source_units[row, :real].tolist(), target
