"""The oracle that never listens: what a model can say of the target language alone."""

from __future__ import annotations

from stacl.policies.base import Policy


class NoSource(Policy):
    """g(t) = 0: cross-attention over nothing. A lower bound for quality, and a test that nothing leaks."""

    reads_all = False

    def wish(self, t: int) -> float:
        return 0

    def spec(self) -> str:
        return "none"
