"""A batch on several cores: each thread computes the gradient of its share of the sentences on one core.

A Transformer of this size is thousands of products too small to be shared out well: two cores that work together on
each of them are 1.6 times as fast as one, two that work side by side on halves of the batch nearly twice. The
gradients are added up in the order of the shares, so the weights do not depend on who finished first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from stacl.support.errors import UserError

LEAST = 1024  # positions that are worth a thread
Job = TypeVar("Job")
Done = TypeVar("Done")


class Shares:
    """`count` threads; with one, everything runs in the caller's own and torch shares out its products."""

    def __init__(self, threads: int, budget: int, device: torch.device) -> None:
        """`threads` cores to use, 0 for all, and batches of `budget` positions."""
        if threads < 0:
            raise UserError(f"train.threads is the number of CPU threads, or 0 for torch's choice, not {threads}")
        self._cores = threads or torch.get_num_threads()
        wanted = min(self._cores, budget // LEAST) if device.type == "cpu" else 1
        self.count = max(1, wanted)
        self._each = max(1, self._cores // self.count)
        self._pool = ThreadPoolExecutor(self.count, "share", self._prepare) if self.count > 1 else None
        torch.set_num_threads(self._each if self._pool else self._cores)

    def _prepare(self) -> None:
        torch.set_num_threads(self._each)  # OpenMP keeps this number for each thread by itself

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Inside, the caller's own thread has all cores for each product."""
        torch.set_num_threads(self._cores)
        try:
            yield
        finally:
            torch.set_num_threads(self._each if self._pool else self._cores)

    def map(self, work: Callable[[Job], Done], jobs: Iterable[Job]) -> Iterable[Done]:
        """The results in the order of the jobs."""
        return self._pool.map(work, jobs) if self._pool else map(work, jobs)
