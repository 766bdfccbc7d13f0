"""Validation while training: loss under the policy, and BLEU of what the model says under it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import sacrebleu
import torch

from stacl.config import Config
from stacl.engines.torch import TorchEngine
from stacl.live.translator import Translator
from stacl.models.base import Model
from stacl.models.batch import collate, epoch_batches
from stacl.models.loss import loss_of
from stacl.models.masks import scheduled
from stacl.policies.base import Policy
from stacl.runs.manifest import Manifest
from stacl.training.prepare import Prepared

Line = TypeVar("Line")


@dataclass(frozen=True)
class Figures:
    loss: float  # nats a target piece
    bleu: float
    bleu_lines: int
    signature: str = ""


def validate(model: Model, prepared: Prepared, config: Config, chosen: Policy) -> Figures:
    """The same numbers whenever it is called with the same weights: nothing random is left to chance."""
    device = next(model.parameters()).device
    data = prepared.valid
    surprise, positions = 0.0, 0
    with torch.inference_mode():
        for numbers in epoch_batches(data.lengths, config.train.budget, config.train.seed, 0):
            pairs = [data[number] for number in numbers.tolist()]
            batch = collate(pairs, prepared.source.ends_word, prepared.target.ends_word, chosen.unit).to(device)
            # Of a family each sentence has its own by its number, or the loss would depend on the size of batches.
            draws = [random.Random(f"{config.train.seed} {number}") for number in numbers.tolist()]
            drawn = map(chosen.draw, draws, batch.source_lengths.tolist())
            loss = loss_of(model, batch, scheduled(list(drawn), batch), 0.0)
            surprise += float(loss.nll)
            positions += loss.positions
    lines = spread_out(prepared.valid_text, config.train.bleu_lines)
    if not lines:
        return Figures(surprise / positions, 0.0, 0)
    translator = Translator(
        Manifest.of(config), TorchEngine(model), prepared.source, prepared.target, policy=chosen.decoding_policy()
    )
    traces = translator.translate_lines([source for source, _ in lines])
    said = [translator.target_language.join(trace.target) for trace in traces]
    metric = sacrebleu.BLEU(tokenize=translator.target_language.tokenizer)
    score = metric.corpus_score(said, [[target for _, target in lines]])
    return Figures(surprise / positions, score.score, len(lines), f"{translator.policy} {metric.get_signature()}")


def spread_out(lines: Sequence[Line], count: int) -> list[Line]:
    """So many lines at even distances: every validation set has its share.

    >>> spread_out("abcdefgh", 3), spread_out("ab", 3)
    (['a', 'c', 'f'], ['a', 'b'])
    """
    count = min(count, len(lines))
    return [lines[number * len(lines) // count] for number in range(count)]
