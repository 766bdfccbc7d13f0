"""Minimum risk training: learning from the model's own translations under its reading policy.

With references alone, a model never sees its own mistakes. Under wait-3 it must often guess, for example a German verb
at the end of its clause. In training the reference precedes every step; live, the model continues from wrong guesses.
So the model samples several translations of each training sentence, under the rules of live translation. Samples with
a higher reward than the others of their sentence are made more likely, the rest less likely. This is REINFORCE with the
mean of the other samples as the baseline (Kool et al. 2019), to lower the expected error (Shen et al. 2016).

Samples are drawn at train.temperature (default 0.7); the gradient is that of log p at temperature 1.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import sacrebleu
import torch
from torch import Tensor

from stacl.config import Config
from stacl.decoding.batched import Sources, decode
from stacl.decoding.constraints.base import Context, build
from stacl.decoding.engine import Engine
from stacl.decoding.options import GREEDY
from stacl.decoding.rules import Rules
from stacl.engines.torch import TorchEngine
from stacl.models.base import Model
from stacl.models.batch import Batch, collate
from stacl.models.masks import scheduled
from stacl.policies.base import Policy
from stacl.support.errors import UserError
from stacl.text.languages import language
from stacl.training.prepare import Prepared

MIN_DEVIATION = 0.01  # of rewards: samples of a sentence that differ by less count as equal


@dataclass(frozen=True)
class Samples:
    """The samples of a batch, those of one sentence next to each other."""

    # The samples to learn from, if any: the batch, g [B, T], and the weight [B] of each before `scale`.
    selected: tuple[Batch, Tensor, Tensor] | None
    sentences: int
    reward: float  # mean reward of a sentence's samples, from 0 to 1, summed over sentences
    variance: float  # variance of the rewards of a sentence's samples, summed over sentences


class MinimumRisk:
    """Samples translations, and computes their rewards."""

    def __init__(self, config: Config, prepared: Prepared, chosen: Policy) -> None:
        self.policy = chosen
        self.samples, self.temperature = config.train.samples, config.train.temperature
        self.source, self.target = prepared.source, prepared.target
        self.language = language(config.data.target)
        self._constraints = build(Context(self.source, self.target, self.language))  # as in live translation
        self._bleu = sacrebleu.BLEU(effective_order=True, tokenize=self.language.tokenizer)
        self._chrf = sacrebleu.CHRF(beta=1)  # a higher weight of recall would reward long translations

    def sample(self, model: Model, batch: Batch, seed: str) -> Samples:
        """Sample translations of all sentences under one drawn policy; the result follows from seed and weights."""
        rng = random.Random(f"{seed} tries")
        drawn = self.policy.draw(rng, int(batch.source_lengths.max()))
        if drawn.needs_confidence:
            raise UserError(f"train.samples needs a policy with a schedule; {drawn} depends on the model's confidence")
        ends = self.source.ends_word, self.target.ends_word
        pairs = [pair for pair in batch.pairs() for _ in range(self.samples)]
        engine = _SamplingEngine(TorchEngine(model), self.samples, self.temperature, rng.getrandbits(63))
        sources = Sources.of([source for source, _ in pairs], ends[0], drawn.unit)
        found = decode(engine, sources, Rules(ends[1], drawn, GREEDY, self._constraints))
        samples = [np.array(hypothesis.pieces, dtype=np.int64) for hypothesis in found]
        references = [reference for _, reference in pairs]
        rewards = np.array(list(map(self.reward, samples, references))).reshape(-1, self.samples)
        advantages = (rewards - rewards.mean(axis=1, keepdims=True)).reshape(-1)
        figures = batch.size, float(rewards.mean(axis=1).sum()), float((advantages**2).sum() / self.samples)
        long = np.array(list(map(is_too_long, samples, references)))
        kept = ((abs(advantages) > 1e-6) & ~long).nonzero()[0]
        if not len(kept):
            return Samples(None, *figures)
        device = batch.source.device
        own = collate([(pairs[number][0], samples[number]) for number in kept], *ends, drawn.unit).to(device)
        weights = torch.tensor(advantages[kept] / self.samples, dtype=torch.float32, device=device)
        return Samples((own, scheduled([drawn] * len(kept), own), weights), *figures)

    def reward(self, sample: np.ndarray, reference: np.ndarray) -> float:
        """The mean of sentence BLEU and character F1, from 0 to 1: exact words, and nearly right words."""
        text, expected = (self.language.join(self.target.words(pieces.tolist())) for pieces in (sample, reference))
        scores = (metric.sentence_score(text, [expected]).score for metric in (self._bleu, self._chrf))
        return sum(scores) / 200


def is_too_long(sample: np.ndarray, reference: np.ndarray) -> bool:
    """Whether a sample is part of the baseline only: the length limit ended it, not the model.

    A single one would also make the batch wide.
    """
    return len(sample) > 2 * len(reference) + 8


def scale(variance: float, sentences: int) -> float:
    """The factor for the weights of an update: 1 / standard deviation of the rewards, limited by MIN_DEVIATION.

    >>> scale(0.16, 4), scale(0.0, 4)
    (5.0, 100.0)
    """
    return 1 / max(MIN_DEVIATION, math.sqrt(variance / sentences))


class _SamplingEngine:
    """An engine that samples: Gumbel noise on the logits turns the most likely piece into a random draw.

    Every sentence comes `times` times in a row, and is encoded once.
    """

    def __init__(self, engine: Engine[Any], times: int, temperature: float, seed: int) -> None:
        self.select = engine.select
        self._engine, self._times, self._temperature = engine, times, temperature
        self._rng = np.random.default_rng(seed)

    def start(self, size: int = 1) -> Any:
        return self._engine.start(size // self._times)

    def read(self, state: Any, pieces: np.ndarray) -> Any:
        once = pieces[:: self._times]
        return self.select(self._engine.read(state, once), np.repeat(np.arange(len(once)), self._times))

    def write(self, state: Any, previous: np.ndarray, visible: np.ndarray | None = None) -> tuple[Any, np.ndarray]:
        state, logits = self._engine.write(state, previous, visible)
        noise = self._rng.standard_exponential(logits.shape, dtype=np.float32)
        return state, logits / self._temperature - np.log(np.maximum(noise, np.finfo(np.float32).tiny))
