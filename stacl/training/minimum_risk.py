"""Learning from what the model says itself under its reading policy, in the way of minimum risk training.

Taught by references alone, a model never meets its own mistakes. Three words behind it has to guess the verb that
German keeps for the end; in training the reference is written before every step, as if all guesses had come true, and
live it has to go on from those that did not. So here it translates training sentences as it would live, each several
times and by chance, and what comes nearer to the reference than its siblings is made likelier, the rest less likely:
REINFORCE with the siblings' mean to compare with (Kool et al. 2019), to lower the expected error (Shen et al. 2016).
(Drawn are they a little sharper than the model thinks, and by the rules of live translation; the gradient is that of
plain log p.)
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

LEAST_SPREAD = 0.01  # of nearness: tries that differ by less are as good as alike


@dataclass(frozen=True)
class Tries:
    """What a model said of a batch: the tries of the first sentence, then those of the next."""

    # Those to learn from, if any; g [B, T], what had been heard; and weights [B], how much likelier each is to become,
    # before all of an update are scaled alike.
    learnt: tuple[Batch, Tensor, Tensor] | None
    sentences: int
    nearness: float  # summed over sentences: how near to the reference the tries came, from 0 to 1
    spread: float  # summed over sentences: the variance of that among siblings


class Practice:
    """What translations are tried in a run, and what they are worth."""

    def __init__(self, config: Config, prepared: Prepared, chosen: Policy) -> None:
        self.policy = chosen
        self.samples, self.temperature = config.train.samples, config.train.temperature
        self.source, self.target = prepared.source, prepared.target
        self.language = language(config.data.target)
        self._constraints = build(Context(self.source, self.target, self.language))  # as in live translation
        self._bleu = sacrebleu.BLEU(effective_order=True, tokenize=self.language.tokenizer)
        self._chrf = sacrebleu.CHRF(beta=1)  # recall for its own sake would teach the model to talk

    def tries(self, model: Model, batch: Batch, seed: str) -> Tries:
        """All sentences of the batch under one policy, drawn from the run's; the same for the same seed and weights."""
        rng = random.Random(f"{seed} tries")
        drawn = self.policy.draw(rng, int(batch.source_lengths.max()))
        if drawn.weighs:
            raise UserError(f"train.samples needs a policy with a schedule; {drawn} decides by how sure the model is")
        ends = self.source.ends_word, self.target.ends_word
        pairs = [pair for pair in batch.pairs() for _ in range(self.samples)]
        engine = _ByChance(TorchEngine(model), self.samples, self.temperature, rng.getrandbits(63))
        sources = Sources.of([source for source, _ in pairs], ends[0], drawn.unit)
        found = decode(engine, sources, Rules(ends[1], drawn, GREEDY, self._constraints))
        said = [np.array(hypothesis.pieces, dtype=np.int64) for hypothesis in found]
        near = np.array([self.nearness(one, reference) for one, (_, reference) in zip(said, pairs, strict=True)])
        near = near.reshape(-1, self.samples)
        above = (near - near.mean(axis=1, keepdims=True)).reshape(-1)
        figures = batch.size, float(near.mean(axis=1).sum()), float((above**2).sum() / self.samples)
        long = np.array([lost_the_thread(one, reference) for one, (_, reference) in zip(said, pairs, strict=True)])
        kept = ((abs(above) > 1e-6) & ~long).nonzero()[0]
        if not len(kept):
            return Tries(None, *figures)
        own = collate([(pairs[number][0], said[number]) for number in kept], *ends, drawn.unit).to(batch.source.device)
        weights = torch.tensor(above[kept] / self.samples, dtype=torch.float32, device=batch.source.device)
        return Tries((own, scheduled([drawn] * len(kept), own), weights), *figures)

    def nearness(self, said: np.ndarray, reference: np.ndarray) -> float:
        """The mean of sentence BLEU and character F1, from 0 to 1: words that are right, and words that nearly are."""
        text, expected = (self.language.join(self.target.words(pieces.tolist())) for pieces in (said, reference))
        scores = (metric.sentence_score(text, [expected]).score for metric in (self._bleu, self._chrf))
        return sum(scores) / 200


def lost_the_thread(said: np.ndarray, reference: np.ndarray) -> bool:
    """Such a try is compared with the others, but not learnt from: the rules have ended it, not the model. And one of
    them would make a batch wide.
    """
    return len(said) > 2 * len(reference) + 8


def scale(spread: float, sentences: int) -> float:
    """What the weights of an update are multiplied with, so that it does not matter how far apart the tries are, unless
    they hardly differ: then there is little to learn.

    >>> scale(0.16, 4), scale(0.0, 4)
    (5.0, 100.0)
    """
    return 1 / max(LEAST_SPREAD, math.sqrt(spread / sentences))


class _ByChance:
    """An engine for sentences that stand there `times` times each and are read at once. Its likeliest piece is a drawn
    one: with noise of Gumbel on the logits the highest is a sample.
    """

    def __init__(self, engine: Engine[Any], times: int, temperature: float, seed: int) -> None:
        self.select = engine.select
        self._engine, self._times, self._temperature = engine, times, temperature
        self._rng = np.random.default_rng(seed)

    def start(self, size: int = 1) -> Any:
        return self._engine.start(size // self._times)

    def read(self, state: Any, pieces: np.ndarray) -> Any:
        """Each sentence is encoded once for all of its translations."""
        once = pieces[:: self._times]
        return self.select(self._engine.read(state, once), np.repeat(np.arange(len(once)), self._times))

    def write(self, state: Any, previous: np.ndarray, visible: np.ndarray | None = None) -> tuple[Any, np.ndarray]:
        state, logits = self._engine.write(state, previous, visible)
        chance = self._rng.standard_exponential(logits.shape, dtype=np.float32)
        return state, logits / self._temperature - np.log(np.maximum(chance, np.finfo(np.float32).tiny))
