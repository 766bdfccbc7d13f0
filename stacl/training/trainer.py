"""The training loop: prefix-to-prefix training under any policy. A killed run resumes to bit-identical weights.

No random state is carried from step to step. The order of an epoch depends on (seed, epoch); dropout, drawn policies
and the samples of minimum risk training depend on (seed, step). So a checkpoint holds only the position, the running
means, the weights and the state of the optimizer and of the gradient scaler.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from stacl.config import Config
from stacl.models.base import Model
from stacl.models.batch import Batch, Encoded, collate, epoch_batches
from stacl.models.dropout import seeded
from stacl.models.loss import loss_of
from stacl.models.masks import reading
from stacl.policies.base import policy
from stacl.runs import checkpoint, pretrained
from stacl.runs.folder import RunFolder, build_model
from stacl.support import memory
from stacl.support.errors import UserError
from stacl.support.files import write_atomically
from stacl.support.progress import Progress, duration
from stacl.training import optim
from stacl.training.device import choose_device, choose_precision
from stacl.training.distributed import NullWriter, World
from stacl.training.log import Clock, Position, RunningMeans, TrainingLog, Update
from stacl.training.minimum_risk import MinimumRisk, Samples, scale
from stacl.training.prepare import Prepared
from stacl.training.thread_pool import GradientThreads
from stacl.training.validate import Figures, validate
from stacl.training.warm_start import warm_start


class Trainer:
    """One training run. `fit` is the loop."""

    def __init__(self, config: Config, folder: RunFolder, prepared: Prepared, world: World | None = None) -> None:
        self.config, self.folder, self.prepared = config, folder, prepared
        self.world = world or World()  # default: a single process
        self.settings = config.train
        self.policy = policy(config.policy)  # loaded once: the file of a custom policy may be edited during the run
        self.minimum_risk = MinimumRisk(config, prepared, self.policy) if self.settings.samples else None
        self.device = choose_device(self.settings.device, self.world.local)
        memory.keep_memory()
        budget = self.settings.budget * max(1, self.settings.samples)
        self.threads = GradientThreads(self.settings.threads, budget, self.device)
        torch.manual_seed(self.settings.seed)
        self.model: Model = self._build_model().to(self.device)
        self._parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = optim.build(self.model, self.settings)
        self.precision = choose_precision(self.settings.precision, self.device)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision is torch.float16)
        self.position = Position()
        self.means = RunningMeans()

    def _build_model(self) -> Model:
        return build_model(self.config.model, self.prepared.source, self.prepared.target, self.config.text.shared)

    def resume(self) -> bool:
        """Load the newest checkpoint. Without one, apply the warm start if any, and return False."""
        saved = checkpoint.checkpoints(self.folder.checkpoints)
        if not saved:
            if start := self.config.model.start:
                vocabularies = self.prepared.source, self.prepared.target
                warm_start(self.model, self.config.model, pretrained.find(start), *vocabularies)
            return False
        progress = checkpoint.load_checkpoint(saved[-1], self.model, self.optimizer)
        try:
            if scaler := progress.pop("scaler"):  # empty if the precision needed no scaler
                self.scaler.load_state_dict(scaler)
            self.means = RunningMeans.load(progress.pop("tally"))
            self.position = Position(**progress)
        except (KeyError, TypeError) as error:
            raise UserError(f"{saved[-1]} was written by another version of stacl: {error}") from None
        if self.position.best_of not in ("", self._criterion):  # BLEU and loss cannot be compared
            self.position.best, self.position.since_best = -math.inf, 0
        self.position.finished = self._reason_to_stop()  # --set may have raised the limits
        return True

    def fit(self) -> Position:
        """Train until there is a reason to stop."""
        settings, here = self.settings, self.position
        first = self.world.first  # the process that writes
        log = TrainingLog(self.folder.log, here.step) if first else NullWriter()
        bar = Progress("step", self._expected_steps(), here.step) if first else NullWriter()
        clock = Clock(here)
        for warning in self._warnings():
            bar.say(warning)
        for batches in self._updates():
            self.means.add(self.update(batches))
            clock.count(batches)
            bar.update(here.step, f"epoch {here.epoch}, {self.means}, {clock.speed(self.world.size)}")
            validated = here.step % settings.validate_every == 0 or self._reason_to_stop()
            if validated:
                if first:
                    figures = self._validate()
                    log.write(self._entry(figures))
                    bar.say(summary(here, figures))
                here.best, here.best_step, here.since_best = self.world.broadcast(
                    (here.best, here.best_step, here.since_best)
                )
                self.means = RunningMeans()
                here.finished = self._reason_to_stop()
            if first and (validated or here.step % settings.save_every == 0):
                clock.stop()
                self.save()
            if here.finished:
                bar.say(f"finished: {here.finished}; best model from step {here.best_step}, {duration(here.seconds)}")
                break
        bar.close()
        log.close()
        return here

    def _entry(self, figures: Figures) -> dict[str, Any]:
        """One line of the log."""
        here = self.position
        where = {"step": here.step, "epoch": here.epoch, "rate": optim.rate_at(here.step, self.settings)}
        best = {"best": here.best_step == here.step, "seconds": round(here.seconds, 1)}
        return where | self.means.entry() | dataclasses.asdict(figures) | best

    def _expected_steps(self) -> int:
        """The number of updates if nothing stops the run early."""
        settings = self.settings
        batches = len(epoch_batches(self.prepared.train.lengths, settings.budget, settings.seed, 0))
        by_epochs = settings.epochs * math.ceil(batches / settings.accumulate)
        return min(settings.steps, by_epochs or settings.steps)

    def _warnings(self) -> Iterator[str]:
        """Warnings about settings that are valid but probably a mistake."""
        settings, expected = self.settings, self._expected_steps()
        falls = settings.schedule in ("cosine", "linear") or settings.cooldown
        if expected < settings.steps and falls:
            yield (
                f"train.epochs ends this run after {expected:,} updates, but the schedule ends at train.steps ="
                f" {settings.steps:,}; set train.steps={expected}"
            )
        if settings.samples and self._criterion == "loss":
            yield "with train.samples the loss on references rises; select by BLEU (train.select, train.bleu_lines)"

    def save(self) -> None:
        more = {"scaler": self.scaler.state_dict(), "tally": self.means.save()}
        progress = dataclasses.asdict(self.position) | more
        checkpoint.save_checkpoint(self.folder.checkpoints, self.model, self.optimizer, progress)

    def _updates(self) -> Iterator[list[Batch]]:
        """The batches of each update from the current position on. Advances the position."""
        here, settings, data = self.position, self.settings, self.prepared.train
        while not here.finished:
            order = epoch_batches(data.lengths, settings.budget, settings.seed, here.epoch)
            if here.batch >= len(order):  # resumed with larger batches, so this epoch has fewer
                here.epoch, here.batch = here.epoch + 1, 0
                continue
            while here.batch < len(order):
                numbers = order[here.batch : here.batch + settings.accumulate]
                batches = [batch for one in numbers for batch in self.batches(data, one)]
                here.batch += len(numbers)
                here.step += 1
                if here.batch >= len(order):
                    here.epoch, here.batch = here.epoch + 1, 0
                    yield batches
                    break
                yield batches

    def batches(self, data: Encoded, numbers: np.ndarray) -> list[Batch]:
        """The sentences of this process, as one batch per thread."""
        own = self.world.shard(numbers)
        parts = [own[first :: self.threads.count].tolist() for first in range(self.threads.count)]
        ends = self.prepared.source.ends_word, self.prepared.target.ends_word
        return [
            collate([data[number] for number in part], *ends, self.policy.unit).to(self.device)
            for part in parts
            if part
        ]

    def update(self, batches: list[Batch]) -> Update:
        """One optimizer step over these batches."""
        step = self.position.step
        positions = int(self.world.sum(sum(int(batch.real.sum()) for batch in batches))[0])
        seeds = [self.world.seed(f"{self.settings.seed} {step} {number}") for number in range(len(batches))]
        samples = self._sample(batches, seeds)
        drawn = [one for one in samples if one]
        sentences, reward, variance = self.world.sum(
            sum(one.sentences for one in drawn), sum(one.reward for one in drawn), sum(one.variance for one in drawn)
        )
        weight = scale(variance, int(sentences)) if sentences else 0.0
        self.model.train()
        jobs = ((*job, weight, positions) for job in zip(batches, samples, seeds, strict=True))
        nll = 0.0
        for found, gradients in self.threads.map(self._gradients, jobs):
            nll += found
            for parameter, gradient in zip(self._parameters, gradients, strict=True):
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        nll = self.world.sum(nll)[0]
        if not math.isfinite(nll):
            raise UserError(f"the loss is not finite at step {step}; lower train.rate or raise train.warmup")
        self.world.sum_gradients(self.model)
        rate = optim.rate_at(step, self.settings)
        with self.threads.all_cores():
            norm = optim.step(self.optimizer, self.model, rate, self.settings.clip, self.scaler)
        return Update(nll, positions, norm, reward, int(sentences))

    def _sample(self, batches: list[Batch], seeds: list[str]) -> list[Samples] | list[None]:
        """The samples of each batch for minimum risk training; None if it is off."""
        if (minimum_risk := self.minimum_risk) is None:
            return [None] * len(batches)
        self.model.eval()  # without dropout; set here, because all threads share the model
        return list(
            self.threads.map(lambda job: minimum_risk.sample(self.model, *job), zip(batches, seeds, strict=True))
        )

    def _gradients(self, job: tuple[Batch, Samples | None, str, float, int]) -> tuple[float, tuple[Tensor, ...]]:
        """The negative log-likelihood of one part of a batch, and its share of the gradient over all `positions`."""
        batch, samples, seed, weight, positions = job
        rng = random.Random(seed)
        with seeded(rng.getrandbits(63)), self._autocast():
            loss = loss_of(self.model, batch, reading(self.policy, batch, rng), self.settings.smoothing)
            minimised = loss.smoothed * (self.settings.references if samples else 1)
            if samples and samples.selected:
                own, g, weights = samples.selected
                minimised = minimised + weight * loss_of(self.model, own, g, 0.0, weights).smoothed
        # Under a policy that never reads, the encoder does not affect the loss, and its gradient is zero.
        scaled = self.scaler.scale(minimised / positions)
        gradients = torch.autograd.grad(scaled, self._parameters, allow_unused=True, materialize_grads=True)
        return float(loss.nll), gradients

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.precision is torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self.precision)

    def _validate(self) -> Figures:
        """Validate the average of the last weights, and keep it if it is the best so far."""
        here, settings = self.position, self.settings
        snapshots = self.folder.snapshots
        name = snapshots / f"{here.step:08d}.safetensors"
        write_atomically(name, lambda path: checkpoint.save_tensors(path, self.model.state_dict()))
        kept = sorted(path for path in snapshots.glob("[0-9]*.safetensors") if path <= name)[-settings.average :]
        for old in snapshots.glob("*.safetensors"):
            if old not in kept:
                old.unlink()
        weights = checkpoint.average(map(checkpoint.load_tensors, kept))
        averaged = self._build_model()
        averaged.load_state_dict(weights)
        with self.threads.all_cores():
            figures = validate(averaged.to(self.device).eval(), self.prepared, self.config, self.policy)
        score = -figures.loss if self._criterion == "loss" else figures.bleu
        here.best_of = self._criterion
        here.since_best += 1
        if (score, -figures.loss) > (here.best, -here.best_loss):  # the loss decides between equal BLEU scores
            here.best, here.best_loss, here.best_step, here.since_best = score, figures.loss, here.step, 0
            facts = {"step": here.step, "averaged": len(kept), "valid": dataclasses.asdict(figures)}
            checkpoint.save_model(self.folder.weights, weights, facts)
        return figures

    @property
    def _criterion(self) -> str:
        """The criterion of the best model."""
        settings = self.settings
        return f"BLEU of {settings.bleu_lines}" if settings.select == "bleu" and settings.bleu_lines else "loss"

    def _reason_to_stop(self) -> str:
        here, settings = self.position, self.settings
        if here.step >= settings.steps:
            return f"all {settings.steps:,} steps are done"
        if settings.epochs and here.epoch >= settings.epochs:
            return f"all {settings.epochs} epochs are done"
        if settings.patience and here.since_best >= settings.patience:
            return f"no improvement in the last {settings.patience} validations"
        return ""


def summary(here: Position, figures: Figures) -> str:
    star = " *" if here.best_step == here.step else ""
    bleu = f", BLEU {figures.bleu:.2f}" if figures.bleu_lines else ""
    perplexity = math.exp(figures.loss) if figures.loss < 50 else math.inf
    return (
        f"step {here.step:,}, epoch {here.epoch}, {duration(here.seconds)}: "
        f"valid loss {figures.loss:.4f}, perplexity {perplexity:.2f}{bleu}{star}"
    )
