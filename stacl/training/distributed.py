"""Training in several processes, on one machine or many: `torchrun ... -m stacl train ...`.

Every process takes its share of each batch's sentences, the gradients are added up, and all make the same step: what
comes out is what one process would have made of the same batches, but for rounding. The first process (rank 0)
prepares the data, validates and writes; the others read what it wrote, so the run folder must be visible to all.

Gradients are flattened and added in one go. torch's own wrapper for this (DDP) wants a model whose loss is computed
inside `forward`; ours is computed outside, chunk by chunk (loss.py).
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from stacl.support.errors import UserError

if TYPE_CHECKING:
    from types import FrameType

    from torch import nn

TIMEOUT = "STACL_TIMEOUT"  # seconds without an answer after which a process is given up
Made = TypeVar("Made")


@dataclass(frozen=True)
class World:
    """All processes of one training, as one of them sees it. The default is a process that is alone."""

    rank: int = 0
    size: int = 1
    local: int = 0  # number of this process on its machine
    patient: Any = None  # the group for what the first process may take hours for

    @property
    def first(self) -> bool:
        return self.rank == 0

    def share(self, numbers: np.ndarray) -> np.ndarray:
        """This process's part of a batch. Neighbours are of like length, so all parts are about the same work."""
        return numbers[self.rank :: self.size]

    def seed(self, text: str) -> str:
        """Random numbers of its own for every process; those of a process that is alone for the first."""
        return text if self.first else f"{text} process {self.rank}"

    def first_then_all(self, make: Callable[[], Made]) -> Made:
        """The first process makes it, then the others, which find it made."""
        made = make() if self.first else None
        self.agree(None)
        return made if made is not None else make()

    def agree(self, value: Made) -> Made:
        """What the first process has. It may take its time: the others wait as long as it lives."""
        if self.size == 1:
            return value
        from torch import distributed

        held = [value]
        with _together():
            distributed.broadcast_object_list(held, src=0, group=self.patient)
        return held[0]

    def add_up(self, *numbers: float) -> list[float]:
        """Each number summed over all processes."""
        if self.size == 1:
            return list(numbers)
        import torch
        from torch import distributed

        total = torch.tensor(numbers, dtype=torch.float64)
        with _together():
            distributed.all_reduce(total)
        return total.tolist()

    def add_up_gradients(self, model: nn.Module) -> None:
        """Summed over all processes, in all processes. A process that had no sentence gives zeros."""
        if self.size == 1:
            return
        import torch
        from torch import distributed

        parameters = [p for p in model.parameters() if p.requires_grad]
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        with _together():
            distributed.all_reduce(flat)
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))


class Nobody:
    """Takes every call and does nothing: log and progress of a process that does not write."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **options: None


def _number(name: str) -> int:
    """Of an environment variable that a launcher sets."""
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        found = repr(os.environ[name]) if name in os.environ else "not set"
        raise UserError(
            f"{name} must be a whole number, and is {found}; start several processes with torchrun"
        ) from None


def _patience() -> float:
    """Seconds that processes wait for one another."""
    written = os.environ.get(TIMEOUT, "600")
    try:
        seconds = float(written)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 1e9:
        raise UserError(f"{TIMEOUT} must be a time in seconds, not {written!r}")
    return seconds


@contextlib.contextmanager
def world() -> Iterator[World]:
    """The processes that torchrun started together with this one; without torchrun, this one alone."""
    if "WORLD_SIZE" not in os.environ or _number("WORLD_SIZE") < 2:
        yield World()
        return
    import torch
    from torch import distributed

    rank, size, local = (_number(name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(local)
    signal.signal(signal.SIGTERM, _told_to_stop)
    patience = timedelta(seconds=_patience())
    with _together():
        distributed.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", timeout=patience)
        patient = distributed.new_group(backend="gloo", timeout=timedelta(days=7))
    try:
        yield World(rank, size, local, patient)
        distributed.destroy_process_group()
    except UserError as error:
        # Left at once: gloo's threads still wait for those that are gone, and would make of an orderly end a crash.
        print(f"stacl train: {error}", file=sys.stderr, flush=True)
        os._exit(2)


@contextlib.contextmanager
def _together() -> Iterator[None]:
    """What all processes do together fails if one of them is gone: say so in one line."""
    try:
        yield
    except RuntimeError as error:  # all errors of torch.distributed are; gloo's have no class of their own
        reason = re.sub(r"\[/[^]]*\] ?", "", " ".join(str(error).split())).partition(". ")[0][:200]
        raise UserError(
            "another process of this training has ended or does not answer, so this one ends too; "
            f"see its own message, then go on with --resume ({reason})"
        ) from None


def _told_to_stop(number: int, frame: FrameType | None) -> None:
    """torchrun ends the others with SIGTERM when one process fails."""
    print("stacl train: told to stop, as when another process has failed; go on with --resume", file=sys.stderr)
    sys.stderr.flush()
    os._exit(128 + number)
