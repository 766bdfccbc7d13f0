"""Wait-k (STACL, section 3.2) with catch-up (section 3.3), and families of k for multipath training."""

from __future__ import annotations

import math
import random
import re
from fractions import Fraction
from typing import Any

from stacl.policies.base import Policy, reject_unknown
from stacl.support.errors import UserError

# Limits the exponent to two digits: Fraction("1e999999999") would never finish.
_SHORT_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,2})?|[+-]?\d{1,40}/\d{1,40}")


class WaitK(Policy):
    """g(t) = min(k + t - 1 - floor(c t), |x|): k words behind, catching up c words per target word.

    With `last_k`, the family k .. last_k. Training draws one k per sentence (multipath); decoding uses `decoding_k`.

    >>> WaitK(2).schedule(7, 7)
    [2, 3, 4, 5, 6, 7, 7]
    """

    def __init__(
        self, k: float, c: Any = 0, ratio: Any = None, last_k: float | None = None, unit: str = "word"
    ) -> None:
        super().__init__(unit)
        self.k = _checked_k(k)
        self.last_k = self.k if last_k is None else _checked_k(last_k)
        if self.last_k < self.k:
            family = f"wait-k:{_format_k(k)}-{_format_k(self.last_k)}"
            raise UserError(f"{family} is a decreasing range; write the smaller k first")
        self.ratio = None if ratio is None else _rational(ratio, "ratio")
        if self.ratio is not None and (c != 0 or self.ratio <= 0):
            raise UserError("wait-k takes c or ratio, not both" if c != 0 else f"ratio must be above 0, not {ratio}")
        # ratio r = target/source length. The paper's printed pattern and "AL ~ k" need c = 1 - 1/r (SPEC 2).
        self.c = _rational(c, "c") if self.ratio is None else 1 - 1 / self.ratio
        if self.c >= 1:
            raise UserError(f"c must be below 1, not {c} (it would stop reading); usual values are -0.25 to 0.25")

    @classmethod
    def parse(cls, arguments: list[str], options: dict[str, str], unit: str) -> WaitK:
        reject_unknown("wait-k", arguments[1:], options, ("c", "ratio"))
        if not arguments:
            raise UserError("wait-k needs a k: for example wait-k:3, wait-k:inf, or wait-k:1-9 to train for k = 1 to 9")
        first, dash, last = arguments[0].partition("-") if not arguments[0].startswith("-") else (arguments[0], "", "")
        return cls(
            parse_k(first),
            c=options.get("c", 0),
            ratio=options.get("ratio"),
            last_k=parse_k(last) if dash else None,
            unit=unit,
        )

    def wish(self, t: int) -> float:
        k = self.decoding_k()
        return k if k == math.inf else k + t - 1 - math.floor(self.c * t)

    def draw(self, rng: random.Random, source_length: int) -> Policy:
        if self.last_k == self.k:
            return self
        # Every k above |x| acts as `full`: drawing them all would train `full` too often.
        last = min(self.last_k, max(self.k, source_length + 1))
        if self.last_k < math.inf:
            return self._with_k(rng.randint(int(self.k), int(last)))
        # Without an upper limit, draw log-uniformly: each doubling of k is equally likely. A uniform draw would
        # rarely train the small k of practical use on long sentences.
        return self._with_k(min(last, math.floor(math.exp(rng.uniform(math.log(self.k), math.log(last + 1))))))

    def decoding_policy(self) -> Policy:
        return self if self.last_k == self.k else self._with_k(self.decoding_k())

    def decoding_k(self) -> float:
        """k, or the middle of a family. Without an upper limit: max(k, 5); 5 is the middle of the paper's 1 to 9."""
        if self.last_k == self.k:
            return self.k
        return max(self.k, 5) if self.last_k == math.inf else (self.k + self.last_k) // 2

    def _with_k(self, k: float) -> WaitK:
        return WaitK(k, c=self.c if self.ratio is None else 0, ratio=self.ratio, unit=self.unit)

    def spec(self) -> str:
        family = f"-{_format_k(self.last_k)}" if self.last_k != self.k else ""
        if self.ratio is not None:
            return f"wait-k:{_format_k(self.k)}{family},ratio={_format_fraction(self.ratio)}"
        return f"wait-k:{_format_k(self.k)}{family}" + (f",c={_format_fraction(self.c)}" if self.c else "")


def _checked_k(k: float) -> float:
    if k != math.inf and (isinstance(k, bool) or k != int(k) or k < 1):
        raise UserError(f"k must be a whole number from 1, or inf, not {k}; the policy none reads nothing")
    return k if k == math.inf else int(k)


def parse_k(text: str) -> float:
    if text in ("inf", "infinity", "∞"):
        return math.inf
    try:
        return int(text)
    except ValueError:
        raise UserError(f"k must be a whole number from 1, or inf, not {text!r}") from None


def _rational(value: Any, name: str) -> Fraction:
    """Parse the decimal text exactly: 0.29 is 29/100, so that floor(0.29 * 100) is 29. A float would give 28."""
    if isinstance(value, int | Fraction):
        return Fraction(value)
    text = str(value).replace(" ", "")
    try:
        if not _SHORT_NUMBER.fullmatch(text):
            raise ValueError(text)
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise UserError(f"{name} must be a number such as 0.25 or 1/4, not {value!r}") from None


def _format_k(k: float) -> str:
    return "inf" if k == math.inf else str(int(k))


def _format_fraction(value: Fraction) -> str:
    """A decimal where it is exact, else a fraction: `_rational` reads both back exactly."""
    decimal = f"{float(value):.12g}"
    return decimal if Fraction(decimal) == value else str(value)
