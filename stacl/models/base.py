"""What every model promises, so that the training loop, the search and the live session know nothing else of it.

`forward(batch, g)` is the training pass: the logits of all target positions at once, position (b, t) having seen the
first g[b, t] source units. `start / read / write` is the same function piece by piece: what `write` answers after
having read n pieces equals the masked pass with those n visible. The state is a value that belongs to the caller:
`read` and `write` return a new one and leave the old one as it was, so one set of weights serves any number of
sessions, and undo is keeping the old state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from stacl.models.batch import Batch


class State(ABC):
    """All that one or more (B) half-translated sentences need to go on."""

    @abstractmethod
    def select(self, rows: Tensor) -> State:
        """The state of these rows, in this order; a row may be taken more than once (beams)."""


class Model(nn.Module, ABC):
    """A translation model over pieces; V target pieces."""

    @classmethod
    @abstractmethod
    def build(cls, settings: Any, source_size: int, target_size: int, shared: bool) -> Model:
        """A new model from the `[model]` section of a config; `shared` means one vocabulary for both sides."""

    @abstractmethod
    def hidden(self, batch: Batch, g: Tensor) -> Tensor:
        """[B, T, D]: what `project` turns into logits. g [B, T] counts units, the end of the source included."""

    @abstractmethod
    def project(self, hidden: Tensor) -> Tensor:
        """[..., D] -> [..., V] logits."""

    def forward(self, batch: Batch, g: Tensor) -> Tensor:
        """[B, T, V] logits of every target position, having seen g[b, t] units of the source."""
        return self.project(self.hidden(batch, g))

    @abstractmethod
    def start(self, size: int = 1) -> State:
        """The state of `size` sentences of which nothing was read or written."""

    @abstractmethod
    def read(self, state: State, pieces: Tensor) -> State:
        """Take in more source: [B, n] pieces (the end symbol is a piece as any other)."""

    @abstractmethod
    def write(self, state: State, previous: Tensor, visible: Tensor | None = None) -> tuple[State, Tensor]:
        """The logits [B, V] of the next target piece after `previous` [B] (BEGIN at first).

        `visible` [B] limits what each row may look at to its first pieces, which is how rows that are not equally far
        are decoded together; without it everything that was read is visible. It never decreases for a row.
        """
