"""No source at all: the model acts as a language model of the target."""

from __future__ import annotations

from stacl.policies.base import Policy


class NoSource(Policy):
    """g(t) = 0: cross-attention sees nothing. A lower bound of quality, and a test that no source leaks."""

    reads_all = False

    def wish(self, t: int) -> float:
        return 0

    def spec(self) -> str:
        return "none"
