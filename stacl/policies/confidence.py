"""Adaptive wait-k (Zheng et al. 2020): speak early where the model is sure of its next piece, wait where it is not.

Between two lags, `confidence:2-6`, the next word is said if the model gives its first piece at least the probability
that this lag asks for; else one more source word is read. The further behind, the less is asked for (from `sure` at the
least lag down to `unsure` before the last), and at the last lag the word is said in any case. One model that was
trained for every k serves it as it is.
"""

from __future__ import annotations

import random

from stacl.policies.base import Action, Policy, View, refuse_rest
from stacl.policies.wait_k import WaitK, parsed_k
from stacl.support.errors import UserError

SURE, UNSURE = 0.8, 0.2


class Confidence(Policy):
    """READ at a lag below `least`, WRITE from `most` on, and between them as sure as `threshold(lag)` asks for.

    Who does not say how sure the model is gets the fastest it may be, wait-`least`: that is what `schedule` shows.

    >>> between = Confidence(1, 5)
    >>> [round(between.threshold(lag), 2) for lag in (1, 2, 3, 4)]
    [0.8, 0.6, 0.4, 0.2]
    >>> between.decide(View(3, 1, ended=False, confidence=0.5)), between.decide(View(3, 1, ended=False, confidence=0.7))
    (<Action.READ: 'R'>, <Action.WRITE: 'W'>)
    """

    needs_confidence = True

    def __init__(
        self, least: float, most: float, sure: float = SURE, unsure: float = UNSURE, unit: str = "word"
    ) -> None:
        super().__init__(unit)
        if least > most:
            raise UserError(f"confidence:{least}-{most} runs backwards; write the smaller lag first")
        self._family = WaitK(least, last_k=most, unit=unit)  # which also says what is wrong with the two
        if most == float("inf"):
            raise UserError("confidence needs a last lag, as in confidence:1-6: else a doubt might last for ever")
        if not 0 <= unsure <= sure <= 1:
            raise UserError(f"confidence needs 0 <= unsure <= sure <= 1, not sure={sure} and unsure={unsure}")
        self.least, self.most, self.sure, self.unsure = int(least), int(most), float(sure), float(unsure)

    @classmethod
    def parse(cls, arguments: list[str], options: dict[str, str], unit: str) -> Confidence:
        refuse_rest("confidence", arguments[1:], options, ("sure", "unsure"))
        least, dash, most = (arguments or [""])[0].partition("-")
        if not (least and dash and most):
            raise UserError("confidence needs its least and last lag, for example confidence:1-6")
        sure, unsure = (_probability(options.get(name, usual), name) for name, usual in _USUAL.items())
        return cls(parsed_k(least), parsed_k(most), sure, unsure, unit)

    def threshold(self, lag: int) -> float:
        """How sure the model must be to speak at this lag."""
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
        """Trained under every wait-k that it may become."""
        return self._family.draw(rng, source_length)

    def spec(self) -> str:
        usual = self.sure == SURE and self.unsure == UNSURE
        return f"confidence:{self.least}-{self.most}" + ("" if usual else f",sure={self.sure},unsure={self.unsure}")


_USUAL = {"sure": SURE, "unsure": UNSURE}


def _probability(written: str | float, name: str) -> float:
    try:
        return float(written)
    except ValueError:
        raise UserError(f"{name} must be a probability such as 0.6, not {written!r}") from None
