"""The interface of every model, for training, search and live sessions.

`forward(batch, g)` is the training pass: the logits of all target positions at once. Position (b, t) sees the first
g[b, t] source units.

`start`, `read` and `write` compute the same function piece by piece. After n pieces were read, `write` returns the
logits of the masked pass in which these n pieces are visible.

States are immutable: `read` and `write` return a new state. So one set of weights serves any number of sessions, and
going back means keeping the old state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor, nn

from stacl.models.batch import Batch


class State(ABC):
    """The decoding state of B partly translated sentences."""

    @abstractmethod
    def select(self, rows: Tensor) -> State:
        """The state of these rows, in this order. A row may occur more than once (beams)."""


class Model(nn.Module, ABC):
    """A translation model over subword pieces; V is the size of the target vocabulary."""

    @classmethod
    @abstractmethod
    def build(cls, settings: Any, source_size: int, target_size: int, shared: bool) -> Model:
        """A new model from the `[model]` section of a config; `shared` means one vocabulary for both sides."""

    @abstractmethod
    def hidden(self, batch: Batch, g: Tensor) -> Tensor:
        """The input of `project`, [B, T, D]. g [B, T] counts units, the end of the source included."""

    @abstractmethod
    def project(self, hidden: Tensor) -> Tensor:
        """[..., D] -> [..., V] logits."""

    def forward(self, batch: Batch, g: Tensor) -> Tensor:
        """The logits [B, T, V] of all target positions; position (b, t) sees g[b, t] units of the source."""
        return self.project(self.hidden(batch, g))

    @abstractmethod
    def start(self, size: int = 1) -> State:
        """The initial state of `size` sentences."""

    @abstractmethod
    def read(self, state: State, pieces: Tensor) -> State:
        """Append source pieces [B, n]. The end symbol is a piece like any other."""

    @abstractmethod
    def write(self, state: State, previous: Tensor, visible: Tensor | None = None) -> tuple[State, Tensor]:
        """The logits [B, V] of the next target piece after `previous` [B] (BEGIN at first).

        `visible` [B] limits each row to its first pieces, so that rows with different delays can share a batch. The
        default is all pieces that were read. It never decreases for a row.
        """
