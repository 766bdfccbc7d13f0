"""Small things that several tests of models need: random batches and tiny models."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import torch

from stacl.config import Config, DataSettings
from stacl.decoding.engine import Engine
from stacl.engines.torch import TorchEngine
from stacl.live.translator import Translator
from stacl.models.base import Model
from stacl.models.batch import Batch, collate
from stacl.models.rnn import Rnn
from stacl.models.transformer import Transformer
from stacl.runs.manifest import Manifest
from stacl.text.languages import language
from stacl.text.subwords import BEGIN, END, SPACE, Subwords

torch.set_num_threads(1)  # tiny products: a second thread only spins, and disturbs whatever else runs
VOCABULARY = 40
# Every third piece ends a word, so that words have one to several pieces.
ENDS_WORD = np.arange(VOCABULARY) % 3 == 0


def random_pieces(rng: random.Random, words: int) -> np.ndarray:
    """Pieces of whole words: each has up to two inner pieces and one that ends it."""
    inner = [p for p in range(4, VOCABULARY) if not ENDS_WORD[p]]
    final = [p for p in range(4, VOCABULARY) if ENDS_WORD[p]]
    pieces: list[int] = []
    for _ in range(words):
        pieces += [rng.choice(inner) for _ in range(rng.randint(0, 2))] + [rng.choice(final)]
    return np.array(pieces, dtype=np.int64)


def random_batch(
    unit: str, seed: int = 0, sizes: tuple[tuple[int, int], ...] = ((5, 7), (3, 2), (6, 4), (1, 5))
) -> Batch:
    rng = random.Random(seed)
    pairs = [(random_pieces(rng, source), random_pieces(rng, target)) for source, target in sizes]
    return collate(pairs, ENDS_WORD, ENDS_WORD, unit)


def tiny_models(vocabulary: int = VOCABULARY) -> dict[str, Model]:
    """One small random model for every kind and mode."""
    torch.manual_seed(1)
    size: dict[str, Any] = {"width": 16, "inner": 32, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
    return {
        "transformer-causal": Transformer(vocabulary, vocabulary, **size, encoder="causal").eval(),
        "transformer-prefix": Transformer(vocabulary, vocabulary, **size, encoder="prefix").eval(),
        "rnn": Rnn(vocabulary, vocabulary, **size).eval(),
    }


def row_of(batch: Batch, row: int) -> tuple[list[int], list[int], list[int]]:
    """Source pieces with END and their units, and the target pieces that the model is fed (BEGIN first)."""
    real = int((batch.source_units[row] < 2**30).sum())
    fed = int(batch.real[row].sum())
    target = batch.target_in[row, :fed].tolist()
    assert target[0] == BEGIN
    return batch.source[row, :real].tolist(), batch.source_units[row, :real].tolist(), target


GERMAN = """Ein Mann schläft auf dem grünen Sofa.
Zwei junge Frauen laufen schnell durch den Park, während es regnet.
Der kleine Hund spielt mit einem roten Ball im Wasser.
Mehrere Leute stehen vor einem Gebäude und warten auf den Bus.
Ein Kind in einem blauen Hemd isst ein Eis.
Gestern haben wir im Garten gegessen, heute bleiben wir im Haus.""".splitlines()


def random_translator(name: str = "transformer-causal", source: str = "de", target: str = "en") -> Translator:
    """A translator with random weights: it talks nonsense, but by all the rules."""
    language_of_text = language(source)
    pieces = Subwords.train([language_of_text.split(line) for line in GERMAN * 3], 360)
    settings = Config(policy="wait-k:2", data=DataSettings(source=source, target=target))
    model: Any = tiny_models(len(pieces))[name]
    with torch.no_grad():
        # Else a random model hardly ever ends a word or a sentence, and tests take for ever.
        model.bias[END] += 4.0
        model.bias[torch.from_numpy(pieces.ends_word)] += 3.0
        model.bias[pieces.pieces.index(SPACE)] = -100.0  # a word without a letter is not shown, and not counted
    return Translator(Manifest.of(settings), TorchEngine(model), pieces, pieces)


def model_of(engine: Engine[Any]) -> Any:
    """The model behind an engine of torch."""
    assert isinstance(engine, TorchEngine)
    return engine.model


def frames(text: str) -> list[tuple[str, str]]:
    """The two lines as they were drawn, again and again: (source, translation)."""
    _, *drawn = text.split("\x1b[J")
    plain = [re.sub(r"\x1b\[[0-9;]*[A-Za-z]|\r", "", one).partition("\n") for one in drawn]
    return [(above, below.rstrip("\n")) for above, _, below in plain]
