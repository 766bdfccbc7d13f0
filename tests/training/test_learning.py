"""Models learn what their policy allows, and cannot learn what it forbids."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
import torch

from stacl import api
from stacl.corpora.base import corpus
from stacl.live.translator import Translator
from stacl.models.batch import Encoded, collate
from stacl.models.masks import reading
from stacl.policies.base import policy
from tests.conftest import stacl
from tests.helpers import model_of

pytestmark = pytest.mark.slow
WORDS = 12
REVERSAL = f"reverse:vocabulary={WORDS},shortest=2,longest=6,pairs=20000,held_out=400"


def reversal_run(folder: Path, toy_config: Path, policy: str, encoder: str, steps: int) -> Translator:
    options = {
        "data.corpora": f'["{REVERSAL}"]',
        "data.duplicates": "true",
        "policy": policy,
        "text.vocabulary": 320,
        "model.encoder": encoder,
        "model.width": 64,
        "model.inner": 128,
        "train.steps": steps,
        "train.validate_every": steps,
        "train.threads": 1,
    }
    done = stacl(
        "train",
        toy_config,
        "--out",
        folder,
        *(part for item in options.items() for part in ("--set", "=".join(map(str, item)))),
    )
    assert done.returncode == 0, done.stderr
    return api.load(folder)


def test_copy_is_learned_under_wait_1(copy_run: Path) -> None:
    lines = [source for source, _ in corpus("copy").open("test")]
    traces = api.load(copy_run).translate_lines(lines)
    right = [" ".join(trace.target) == line for trace, line in zip(traces, lines, strict=True)]
    assert sum(right) >= 0.95 * len(lines)
    assert all(
        trace.delays == tuple(range(1, len(trace.source) + 1)) for trace, ok in zip(traces, right, strict=True) if ok
    )


@pytest.mark.parametrize("encoder", ["prefix", "causal"])
def test_reversal_is_learned_with_the_whole_sentence(tmp_path: Path, toy_config: Path, encoder: str) -> None:
    translator = reversal_run(tmp_path / "run", toy_config, "full", encoder, 450)
    pairs = list(corpus(REVERSAL).open("test"))
    traces = translator.translate_lines([source for source, _ in pairs])
    right = sum(" ".join(trace.target) == target for trace, (_, target) in zip(traces, pairs, strict=True))
    assert right >= 0.8 * len(pairs)


def test_reversal_is_not_learned_under_wait_1(tmp_path: Path, toy_config: Path) -> None:
    """y_t = x_(n+1-t), and wait-1 has read x_1 .. x_t: in the first half, accuracy above chance would be a leak."""
    reversal_run(tmp_path / "run", toy_config, "wait-k:1", "causal", 300)
    was_read, not_read = teacher_forced(tmp_path / "run", "wait-k:1")
    chance = 1 / WORDS
    spread = math.sqrt(chance * (1 - chance) / len(not_read))
    assert sum(not_read) / len(not_read) < chance + 4 * spread
    # The model did learn: it predicts words that it has read.
    assert sum(was_read) / len(was_read) > 4 * chance


def teacher_forced(folder: Path, spec: str) -> tuple[list[bool], list[bool]]:
    """Teacher-forced correctness of each validation word: for words already read, and for the others."""
    translator = api.load(folder)
    data, pieces = Encoded(folder / "data" / "valid"), translator.target_pieces
    was_read: list[bool] = []
    not_read: list[bool] = []
    for index in range(len(data)):
        batch = collate([data[index]], pieces.ends_word, pieces.ends_word, "word")
        with torch.inference_mode():
            logits = model_of(translator.engine)(batch, reading(policy(spec), batch, random.Random(0)))[0]
        right = logits.argmax(-1) == batch.target_out[0]
        length = int(batch.source_lengths[0])
        for word in range(1, length + 1):
            all_pieces = bool(right[batch.target_units[0] == word].all())
            (was_read if length + 1 - word <= word else not_read).append(all_pieces)
    return was_read, not_read
