"""The interface of a constraint, which forbids next pieces based on what was written and read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stacl.decoding.hypothesis import Hypothesis
from stacl.support import plugins
from stacl.text.languages import Language
from stacl.text.subwords import Subwords

FOLDER = "decoding.constraints"


@dataclass(frozen=True)
class Context:
    """What a constraint can use of a model."""

    source: Subwords
    target: Subwords
    target_language: Language


class Constraint(ABC):
    """A rule that forbids pieces. It sees only the source pieces that were read, so it never looks ahead."""

    order = 0  # constraints with a higher order are applied later

    @classmethod
    @abstractmethod
    def build(cls, context: Context) -> Constraint:
        """Create the constraint for one model."""

    @abstractmethod
    def forbid(self, logits: np.ndarray, hypothesis: Hypothesis, source: Sequence[int] | np.ndarray) -> None:
        """Set forbidden pieces to minus infinity in one row of logits [V]. At least one logit must stay finite.

        `source` holds the source pieces read so far.
        """


def build(context: Context, names: Sequence[str] | None = None) -> tuple[Constraint, ...]:
    """Create the named constraints, or all of them, in the order in which they are applied."""
    chosen = plugins.names(FOLDER) if names is None else names
    kinds = [plugins.find(FOLDER, name, Constraint) for name in chosen]  # type: ignore[type-abstract]
    return tuple(kind.build(context) for kind in sorted(kinds, key=lambda kind: kind.order))
