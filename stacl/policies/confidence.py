"""Adaptive wait-k (Zheng et al. 2020): write early where the model is confident of its next piece, else read on.

`confidence:2-6` keeps the lag between 2 and 6. It writes the next word if the probability of its first piece reaches
the threshold of the current lag. Otherwise it reads one more source word. The threshold falls with the lag, from `sure`
at the minimum lag to `unsure` one below the maximum. At the maximum lag it always writes. A model that was trained for
every k (multipath) needs no further training.
"""

from __future__ import annotations

import random

from stacl.policies.base import Action, Policy, View, reject_unknown
from stacl.policies.wait_k import WaitK, parse_k
from stacl.support.errors import UserError

SURE, UNSURE = 0.8, 0.2


class Confidence(Policy):
    """READ below lag `least`, WRITE from lag `most` on, and WRITE between them if confidence >= `threshold(lag)`.

    Without a confidence value it behaves as wait-`least`, the lowest latency it can have. `schedule` shows that.

    >>> adaptive = Confidence(1, 5)
    >>> [round(adaptive.threshold(lag), 2) for lag in (1, 2, 3, 4)]
    [0.8, 0.6, 0.4, 0.2]
    >>> [adaptive.decide(View(3, 1, ended=False, confidence=value)) for value in (0.5, 0.7)]
    [<Action.READ: 'R'>, <Action.WRITE: 'W'>]
    """

    needs_confidence = True

    def __init__(
        self, least: float, most: float, sure: float = SURE, unsure: float = UNSURE, unit: str = "word"
    ) -> None:
        super().__init__(unit)
        if least > most:
            raise UserError(f"confidence:{least}-{most} is a decreasing range; write the smaller lag first")
        self._family = WaitK(least, last_k=most, unit=unit)  # also validates both lags
        if most == float("inf"):
            raise UserError("the maximum lag of confidence must be finite, for example confidence:1-6")
        if not 0 <= unsure <= sure <= 1:
            raise UserError(f"confidence needs 0 <= unsure <= sure <= 1, not sure={sure} and unsure={unsure}")
        self.least, self.most, self.sure, self.unsure = int(least), int(most), float(sure), float(unsure)

    @classmethod
    def parse(cls, arguments: list[str], options: dict[str, str], unit: str) -> Confidence:
        reject_unknown("confidence", arguments[1:], options, ("sure", "unsure"))
        least, dash, most = (arguments or [""])[0].partition("-")
        if not (least and dash and most):
            raise UserError("confidence needs a minimum and a maximum lag, for example confidence:1-6")
        sure, unsure = (_probability(options.get(name, default), name) for name, default in _DEFAULTS.items())
        return cls(parse_k(least), parse_k(most), sure, unsure, unit)

    def threshold(self, lag: int) -> float:
        """The minimum probability of the next piece for a WRITE at this lag."""
        steps = max(1, self.most - 1 - self.least)
        return self.sure - (self.sure - self.unsure) * min(1.0, (lag - self.least) / steps)

    def decide(self, view: View) -> Action:
        lag = view.read - view.written
        if view.ended or lag >= self.most:
            return Action.WRITE
        if lag < self.least:
            return Action.READ
        unsure = view.confidence is not None and view.confidence < self.threshold(lag)
        return Action.READ if unsure else Action.WRITE

    def draw(self, rng: random.Random, source_length: int) -> Policy:
        """Training draws one wait-k between the two lags."""
        return self._family.draw(rng, source_length)

    def spec(self) -> str:
        default = self.sure == SURE and self.unsure == UNSURE
        return f"confidence:{self.least}-{self.most}" + ("" if default else f",sure={self.sure},unsure={self.unsure}")


_DEFAULTS = {"sure": SURE, "unsure": UNSURE}


def _probability(written: str | float, name: str) -> float:
    try:
        return float(written)
    except ValueError:
        raise UserError(f"{name} must be a probability such as 0.6, not {written!r}") from None
