"""Validation during training: the loss and the BLEU of translations under the policy of the run."""

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
    loss: float  # nats per target piece
    bleu: float
    bleu_lines: int
    signature: str = ""


def validate(model: Model, prepared: Prepared, config: Config, chosen: Policy) -> Figures:
    """Loss and BLEU of a model. All draws are seeded, so the same weights give the same figures."""
    device = next(model.parameters()).device
    data = prepared.valid
    nll, positions = 0.0, 0
    with torch.inference_mode():
        for numbers in epoch_batches(data.lengths, config.train.budget, config.train.seed, 0):
            pairs = [data[number] for number in numbers.tolist()]
            batch = collate(pairs, prepared.source.ends_word, prepared.target.ends_word, chosen.unit).to(device)
            # The seed is per sentence, so that the drawn policies do not depend on the batch size.
            draws = [random.Random(f"{config.train.seed} {number}") for number in numbers.tolist()]
            drawn = map(chosen.draw, draws, batch.source_lengths.tolist())
            loss = loss_of(model, batch, scheduled(list(drawn), batch), 0.0)
            nll += float(loss.nll)
            positions += loss.positions
    lines = spread_out(prepared.valid_text, config.train.bleu_lines)
    if not lines:
        return Figures(nll / positions, 0.0, 0)
    translator = Translator(
        Manifest.of(config), TorchEngine(model), prepared.source, prepared.target, policy=chosen.decoding_policy()
    )
    traces = translator.translate_lines([source for source, _ in lines])
    outputs = [translator.target_language.join(trace.target) for trace in traces]
    metric = sacrebleu.BLEU(tokenize=translator.target_language.tokenizer)
    score = metric.corpus_score(outputs, [[target for _, target in lines]])
    return Figures(nll / positions, score.score, len(lines), f"{translator.policy} {metric.get_signature()}")


def spread_out(lines: Sequence[Line], count: int) -> list[Line]:
    """`count` evenly spaced lines, so that every validation set contributes.

    >>> spread_out("abcdefgh", 3), spread_out("ab", 3)
    (['a', 'c', 'f'], ['a', 'b'])
    """
    count = min(count, len(lines))
    return [lines[number * len(lines) // count] for number in range(count)]
