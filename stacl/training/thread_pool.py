"""Data parallelism over threads: each thread computes the gradient of its part of the batch on one core.

The matrix products of a small Transformer are too small to be split well. Two cores that share each product are 1.6
times as fast as one; two cores with half of the batch each are nearly twice as fast. The gradients are added in the
order of the parts, so the weights do not depend on timing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from stacl.support.errors import UserError

MIN_POSITIONS = 1024  # per thread
Job = TypeVar("Job")
Result = TypeVar("Result")


class GradientThreads:
    """`count` threads. With one, everything runs in the caller's thread, and torch may split each product."""

    def __init__(self, threads: int, budget: int, device: torch.device) -> None:
        """Use `threads` cores (0: all) for batches of `budget` positions."""
        if threads < 0:
            raise UserError(f"train.threads must be the number of CPU threads, or 0 for all cores, not {threads}")
        self._cores = threads or torch.get_num_threads()
        wanted = min(self._cores, budget // MIN_POSITIONS) if device.type == "cpu" else 1
        self.count = max(1, wanted)
        self._each = max(1, self._cores // self.count)
        self._pool = ThreadPoolExecutor(self.count, "gradient", self._prepare) if self.count > 1 else None
        torch.set_num_threads(self._each if self._pool else self._cores)

    def _prepare(self) -> None:
        torch.set_num_threads(self._each)  # OpenMP keeps this number per thread

    @contextlib.contextmanager
    def all_cores(self) -> Iterator[None]:
        """Inside, the caller's thread uses all cores for each product."""
        torch.set_num_threads(self._cores)
        try:
            yield
        finally:
            torch.set_num_threads(self._each if self._pool else self._cores)

    def map(self, work: Callable[[Job], Result], jobs: Iterable[Job]) -> Iterable[Result]:
        """Run the jobs, and return their results in the order of the jobs."""
        return self._pool.map(work, jobs) if self._pool else map(work, jobs)
