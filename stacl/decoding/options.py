"""Options of decoding, shared by live sessions, batches, servers and evaluations."""

from __future__ import annotations

from dataclasses import dataclass

from stacl.support import plugins
from stacl.support.errors import UserError

_LARGEST = 100


@dataclass(frozen=True)
class Decoding:
    """Greedy unless `beam` says otherwise.

    The beam is used once the source has ended, which adds no delay. With `ahead` it also looks that many pieces ahead
    while the source is still open. `early_end` allows the output to end before the source does. `constraints` names the
    constraints to apply (files of `decoding/constraints`); None applies all of them.
    """

    beam: int = 1
    ahead: int = 0
    early_end: bool = False
    constraints: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.beam <= _LARGEST:
            raise UserError(f"the beam must be from 1 to {_LARGEST}, not {self.beam}")
        if not 0 <= self.ahead <= _LARGEST:
            raise UserError(f"the look-ahead must be from 0 to {_LARGEST} pieces, not {self.ahead}")
        if self.ahead and self.beam == 1:
            raise UserError("a look-ahead requires a beam of 2 or more")
        for name in self.constraints or ():
            plugins.check("decoding.constraints", name)


GREEDY = Decoding()
BEST = Decoding(beam=5)  # for a complete text
