"""The training loop: prefix-to-prefix training under any policy, bit-identical after any kill.

Nothing random is carried from step to step: the order of an epoch follows from (seed, epoch); dropout, drawn policies
and the translations that the model tries from (seed, step). So step, weights and Adam's moments are all that a
checkpoint has to hold.
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
from stacl.training.distributed import Nobody, World
from stacl.training.log import Clock, Log, Position, Tally, Update
from stacl.training.minimum_risk import Practice, Tries, scale
from stacl.training.prepare import Prepared
from stacl.training.thread_pool import Shares
from stacl.training.validate import Figures, validate
from stacl.training.warm_start import begin_with


class Trainer:
    """One run. `fit` is the loop."""

    def __init__(self, config: Config, folder: RunFolder, prepared: Prepared, world: World | None = None) -> None:
        self.config, self.folder, self.prepared = config, folder, prepared
        self.world = world or World()  # this process alone
        self.settings = config.train
        self.policy = policy(config.policy)  # once: a file of one's own may be edited while the run goes on
        self.practice = Practice(config, prepared, self.policy) if self.settings.samples else None
        self.device = choose_device(self.settings.device, self.world.local)
        memory.keep_memory()
        self.shares = Shares(self.settings.threads, self.settings.budget * max(1, self.settings.samples), self.device)
        torch.manual_seed(self.settings.seed)
        self.model: Model = self._build_model().to(self.device)
        self._parameters = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        self.optimizer = optim.build(self.model, self.settings)
        self.precision = choose_precision(self.settings.precision, self.device)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision is torch.float16)
        self.position = Position()
        self.tally = Tally()

    def _build_model(self) -> Model:
        return build_model(self.config.model, self.prepared.source, self.prepared.target, self.config.text.shared)

    def resume(self) -> bool:
        """Go to where the newest checkpoint is; False if there is none, and the run begins."""
        saved = checkpoint.checkpoints(self.folder.checkpoints)
        if not saved:
            if start := self.config.model.start:
                vocabularies = self.prepared.source, self.prepared.target
                begin_with(self.model, self.config.model, pretrained.find(start), *vocabularies)
            return False
        progress = checkpoint.load_checkpoint(saved[-1], self.model, self.optimizer)
        try:
            if scaler := progress.pop("scaler"):  # none was needed before, if the precision is another now
                self.scaler.load_state_dict(scaler)
            self.tally = Tally(**progress.pop("tally"))
            self.position = Position(**progress)
        except (KeyError, TypeError) as error:
            raise UserError(f"{saved[-1]} was written by another version of stacl: {error}") from None
        if self.position.best_of not in ("", self._measure):  # a BLEU and a loss cannot be compared
            self.position.best, self.position.since_best = -math.inf, 0
        self.position.finished = self._reason_to_stop()  # the limits may have been raised since
        return True

    def fit(self) -> Position:
        """Train until there is a reason to stop."""
        settings, here = self.settings, self.position
        first = self.world.first  # the process that writes
        log = Log(self.folder.path, here.step) if first else Nobody()
        bar = Progress("step", self._expected_steps(), here.step) if first else Nobody()
        clock = Clock(here)
        for warning in self._warnings():
            bar.say(warning)
        for batches in self._updates():
            self.tally.add(self.update(batches))
            clock.count(batches)
            bar.update(here.step, f"epoch {here.epoch}, {self.tally.said()}, {clock.speed(self.world.size)}")
            validated = here.step % settings.validate_every == 0 or self._reason_to_stop()
            if validated:
                if first:
                    figures = self._validate()
                    log.write(self._entry(figures))
                    bar.say(summary(here, figures))
                here.best, here.best_step, here.since_best = self.world.agree(
                    (here.best, here.best_step, here.since_best)
                )
                self.tally = Tally()
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
        return where | self.tally.means() | dataclasses.asdict(figures) | best

    def _expected_steps(self) -> int:
        """Updates if nothing stops the run early."""
        settings = self.settings
        batches = len(epoch_batches(self.prepared.train.lengths, settings.budget, settings.seed, 0))
        by_epochs = settings.epochs * math.ceil(batches / settings.accumulate)
        return min(settings.steps, by_epochs or settings.steps)

    def _warnings(self) -> Iterator[str]:
        """What is allowed, but hardly meant."""
        settings, expected = self.settings, self._expected_steps()
        falls = settings.schedule in ("cosine", "linear") or settings.cooldown
        if expected < settings.steps and falls:
            yield (
                f"train.epochs ends this run after {expected:,} updates; the rate is to come down at train.steps ="
                f" {settings.steps:,}: set train.steps={expected}"
            )
        if settings.samples and self._measure == "loss":
            yield "with train.samples the loss on references rises: choose by BLEU, train.select and train.bleu_lines"

    def save(self) -> None:
        more = {"scaler": self.scaler.state_dict(), "tally": dataclasses.asdict(self.tally)}
        progress = dataclasses.asdict(self.position) | more
        checkpoint.save_checkpoint(self.folder.checkpoints, self.model, self.optimizer, progress)

    def _updates(self) -> Iterator[list[Batch]]:
        """The batches of every update from the present position on; moves the position."""
        here, settings, data = self.position, self.settings, self.prepared.train
        while not here.finished:
            order = epoch_batches(data.lengths, settings.budget, settings.seed, here.epoch)
            if here.batch >= len(order):  # resumed with larger batches: this epoch had fewer of them
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
        """This process's part of these sentences, in as many shares as it has threads."""
        own = self.world.share(numbers)
        shares = [own[first :: self.shares.count].tolist() for first in range(self.shares.count)]
        ends = self.prepared.source.ends_word, self.prepared.target.ends_word
        return [
            collate([data[number] for number in share], *ends, self.policy.unit).to(self.device)
            for share in shares
            if share
        ]

    def update(self, batches: list[Batch]) -> Update:
        """One step over some batches."""
        step = self.position.step
        positions = int(self.world.add_up(sum(int(batch.real.sum()) for batch in batches))[0])
        seeds = [self.world.seed(f"{self.settings.seed} {step} {number}") for number in range(len(batches))]
        tries = self._tries(batches, seeds)
        made = [one for one in tries if one]
        sentences, nearness, spread = self.world.add_up(
            sum(one.sentences for one in made), sum(one.nearness for one in made), sum(one.spread for one in made)
        )
        weight = scale(spread, int(sentences)) if sentences else 0.0
        self.model.train()
        jobs = ((*job, weight, positions) for job in zip(batches, tries, seeds, strict=True))
        surprise = 0.0
        for found, gradients in self.shares.map(self._gradients, jobs):
            surprise += found
            for parameter, gradient in zip(self._parameters, gradients, strict=True):
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
        surprise = self.world.add_up(surprise)[0]
        if not math.isfinite(surprise):
            raise UserError(f"the loss is not finite at step {step}; lower train.rate or raise train.warmup")
        self.world.add_up_gradients(self.model)
        rate = optim.rate_at(step, self.settings)
        with self.shares.together():
            norm = optim.step(self.optimizer, self.model, rate, self.settings.clip, self.scaler)
        return Update(surprise, positions, norm, nearness, int(sentences))

    def _tries(self, batches: list[Batch], seeds: list[str]) -> list[Tries] | list[None]:
        """What the model says of each batch by itself, if it learns from that too."""
        if (practice := self.practice) is None:
            return [None] * len(batches)
        self.model.eval()  # for all threads: whether dropout is on is a fact of the model that they share
        return list(self.shares.map(lambda job: practice.tries(self.model, *job), zip(batches, seeds, strict=True)))

    def _gradients(self, job: tuple[Batch, Tries | None, str, float, int]) -> tuple[float, tuple[Tensor, ...]]:
        """Of one share: its surprise, and what it adds to the gradient of all `positions`."""
        batch, tries, seed, weight, positions = job
        rng = random.Random(seed)
        with seeded(rng.getrandbits(63)), self._autocast():
            loss = loss_of(self.model, batch, reading(self.policy, batch, rng), self.settings.smoothing)
            minimised = loss.smoothed * (self.settings.references if tries else 1)
            if tries and tries.learnt:
                minimised = minimised + weight * loss_of(self.model, *tries.learnt[:2], 0.0, tries.learnt[2]).smoothed
        # Under a policy that never reads, the encoder has no part in the loss: its gradient is zero.
        scaled = self.scaler.scale(minimised / positions)
        gradients = torch.autograd.grad(scaled, self._parameters, allow_unused=True, materialize_grads=True)
        return float(loss.surprise), gradients

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        if self.precision is torch.float32:
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, self.precision)

    def _validate(self) -> Figures:
        """Measure the average of the last weights, and keep it if it is the best so far."""
        here, settings = self.position, self.settings
        snapshots = self.folder.snapshots
        name = snapshots / f"{here.step:08d}.safetensors"
        write_atomically(name, lambda path: checkpoint.save_tensors(path, self.model.state_dict()))
        kept = sorted(path for path in snapshots.glob("[0-9]*.safetensors") if path <= name)[-settings.average :]
        for old in snapshots.glob("*.safetensors"):
            if old not in kept:
                old.unlink()
        weights = checkpoint.average(map(checkpoint.load_tensors, kept))
        measured = self._build_model()
        measured.load_state_dict(weights)
        with self.shares.together():
            figures = validate(measured.to(self.device).eval(), self.prepared, self.config, self.policy)
        score = -figures.loss if self._measure == "loss" else figures.bleu
        here.best_of = self._measure
        here.since_best += 1
        if (score, -figures.loss) > (here.best, -here.best_loss):  # a BLEU of 0 says little
            here.best, here.best_loss, here.best_step, here.since_best = score, figures.loss, here.step, 0
            facts = {"step": here.step, "averaged": len(kept), "valid": dataclasses.asdict(figures)}
            checkpoint.save_model(self.folder.weights, weights, facts)
        return figures

    @property
    def _measure(self) -> str:
        """What the best model is chosen by."""
        settings = self.settings
        return f"BLEU of {settings.bleu_lines}" if settings.select == "bleu" and settings.bleu_lines else "loss"

    def _reason_to_stop(self) -> str:
        here, settings = self.position, self.settings
        if here.step >= settings.steps:
            return f"all {settings.steps:,} steps are done"
        if settings.epochs and here.epoch >= settings.epochs:
            return f"all {settings.epochs} epochs are done"
        if settings.patience and here.since_best >= settings.patience:
            return f"no better validation in the last {settings.patience}"
        return ""


def summary(here: Position, figures: Figures) -> str:
    star = " *" if here.best_step == here.step else ""
    bleu = f", BLEU {figures.bleu:.2f}" if figures.bleu_lines else ""
    perplexity = math.exp(figures.loss) if figures.loss < 50 else math.inf
    return (
        f"step {here.step:,}, epoch {here.epoch}, {duration(here.seconds)}: "
        f"valid loss {figures.loss:.4f}, perplexity {perplexity:.2f}{bleu}{star}"
    )


def choose_device(name: str, local: int = 0) -> torch.device:
    """`local` is the number of this process on its machine: each takes a GPU of its own."""
    if name == "auto":
        return torch.device(f"cuda:{local}" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise UserError(f"train.device is {name}, but no GPU is to be had here; use cpu or auto")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(f"train.device is {name}, but there are {torch.cuda.device_count()} GPUs, counted from 0")
    return device


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    if name == "auto":
        if device.type != "cuda":
            return torch.float32
        name = "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    chosen: torch.dtype = getattr(torch, name)
    return chosen
