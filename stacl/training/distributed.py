"""Training in several processes, on one machine or many: `torchrun ... -m stacl train ...`.

Every process takes a shard of each batch. The gradients are summed, and all processes make the same update. The result
is that of one process with the same batches, except for rounding. The first process (rank 0) prepares the data,
validates and writes. The others read its files, so all of them need access to the run folder.

Gradients are flattened and summed in one operation. torch's DDP requires a loss that is computed in `forward`; ours is
computed outside, in chunks (loss.py).
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
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from stacl.support.errors import UserError

if TYPE_CHECKING:
    from types import FrameType

    from torch import nn
    from torch.distributed import ProcessGroup

TIMEOUT = "STACL_TIMEOUT"  # environment variable: seconds to wait for another process
Made = TypeVar("Made")


@dataclass(frozen=True)
class World:
    """The processes of one training run, as seen by one of them. The default is a single process."""

    rank: int = 0
    size: int = 1
    local: int = 0  # rank of this process on its machine
    patient: ProcessGroup | None = None  # with a long time-out: preparation in the first process may take hours

    @property
    def first(self) -> bool:
        return self.rank == 0

    def shard(self, numbers: np.ndarray) -> np.ndarray:
        """The part of a batch for this process. Neighbours are of similar length, so all parts take about as long."""
        return numbers[self.rank :: self.size]

    def seed(self, text: str) -> str:
        """A different seed for every process; the first has the seed of a single process."""
        return text if self.first else f"{text} process {self.rank}"

    def first_then_all(self, make: Callable[[], Made]) -> Made:
        """Call `make` in the first process, then in the others, which find its files."""
        made = make() if self.first else None
        self.broadcast(None)
        return made if made is not None else make()

    def broadcast(self, value: Made) -> Made:
        """The value of the first process. The others wait for it (up to 7 days)."""
        if self.size == 1:
            return value
        from torch import distributed

        held = [value]
        with _collective():
            distributed.broadcast_object_list(held, src=0, group=self.patient)
        return held[0]

    def sum(self, *numbers: float) -> list[float]:
        """Each number summed over all processes."""
        if self.size == 1:
            return list(numbers)
        import torch
        from torch import distributed

        total = torch.tensor(numbers, dtype=torch.float64)
        with _collective():
            distributed.all_reduce(total)
        return total.tolist()

    def sum_gradients(self, model: nn.Module) -> None:
        """Replace each gradient by its sum over all processes. A process without sentences contributes zeros."""
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
        with _collective():
            distributed.all_reduce(flat)
        parts = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, part in zip(gradients, parts, strict=True):
            gradient.copy_(part.view_as(gradient))


class NullWriter:
    """Accepts every method call and does nothing: the log and the progress of a process that does not write."""

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *args, **options: None


def _number(name: str) -> int:
    """The value of an environment variable that torchrun sets."""
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        found = repr(os.environ[name]) if name in os.environ else "unset"
        raise UserError(f"{name} must be a whole number, not {found}; start several processes with torchrun") from None


def _timeout() -> float:
    """The time-out of collective operations in seconds."""
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
    """The processes that torchrun started; without torchrun, this process alone."""
    if "WORLD_SIZE" not in os.environ or _number("WORLD_SIZE") < 2:
        yield World()
        return
    import torch
    from torch import distributed

    rank, size, local = (_number(name) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(local)
    signal.signal(signal.SIGTERM, _on_sigterm)
    patience = timedelta(seconds=_timeout())
    with _collective():
        distributed.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo", timeout=patience)
        patient = distributed.new_group(backend="gloo", timeout=timedelta(days=7))
    try:
        yield World(rank, size, local, patient)
        distributed.destroy_process_group()
    except UserError as error:
        # Exit at once: gloo's threads still wait for the other processes, and would crash during a normal exit.
        print(f"stacl train: {error}", file=sys.stderr, flush=True)
        os._exit(2)


@contextlib.contextmanager
def _collective() -> Iterator[None]:
    """Report a failed collective operation as a UserError: another process has ended."""
    try:
        yield
    except RuntimeError as error:  # the base class of all errors of torch.distributed
        reason = re.sub(r"\[/[^]]*\] ?", "", " ".join(str(error).split())).partition(". ")[0][:200]
        raise UserError(
            "another process of this training has ended or does not answer, so this one ends too; "
            f"see its message, then continue with --resume ({reason})"
        ) from None


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    """torchrun sends SIGTERM to the other processes when one fails."""
    print(
        "stacl train: stopped by SIGTERM, for example because another process failed; continue with --resume",
        file=sys.stderr,
    )
    sys.stderr.flush()
    os._exit(128 + number)
