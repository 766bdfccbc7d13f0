"""The base class of all policies. Training and live decoding derive their behaviour from the same g(t).

`Policy.wish(t)` is the number of source units to read before target unit t is decided (t from 1). The end of the
source counts as one more unit, read after the last word. So a source of |x| words has |x|+1 units:

* `visible(|x|, |y|)` is min(wish, |x|+1): what the training mask shows;
* `decide(view)` is READ while fewer than wish(t) units were read and the source is open: what happens live;
* `schedule(|x|, |y|)` is min(wish, |x|), the paper's g(t): what is displayed and scored.

All three come from `wish`, so training and live decoding agree. For a policy that overrides `decide`, the other two are
computed by calling `decide` step by step.
"""

from __future__ import annotations

import contextlib
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from pathlib import Path
from typing import Any

from stacl.support import plugins
from stacl.support.errors import UserError, suggest

UNITS = ("word", "piece")


class Action(Enum):
    READ = "R"
    WRITE = "W"


@dataclass(frozen=True)
class View:
    """What a policy may use for a decision. It excludes all source units that were not read."""

    read: int  # source units read so far; the end counts as one
    written: int  # target units finished so far
    ended: bool  # the end of the source has been read
    confidence: float | None = None  # the probability of the likeliest next piece, for a policy that `needs_confidence`


class Policy(ABC):
    """A reading policy. A subclass defines `wish` or overrides `decide`."""

    reads_all = True  # False: the output may end before the end of the source was read
    needs_confidence = False  # True: before a WRITE, `decide` is called again with `view.confidence`
    file_name = ""  # `file.py:Name` of a custom policy: two files may define policies with the same spec
    file_checksum = 0  # CRC-32 of that file

    def __init__(self, unit: str = "word") -> None:
        if unit not in UNITS:
            raise UserError(f"the unit of a policy must be word or piece, not {unit!r}{suggest(unit, UNITS)}")
        self.unit = unit

    @classmethod
    def parse(cls, arguments: list[str], options: dict[str, str], unit: str) -> Policy:
        """Build the policy from `name:argument,option=value`. The base class accepts neither arguments nor options."""
        reject_unknown(cls.__module__.rpartition(".")[2], arguments, options, ())
        return cls(unit)

    def wish(self, t: int) -> float:
        """Source units to read before target unit t is decided; the end counts as one. math.inf: the whole source.

        Fractions are rounded up. A value below an earlier one has no effect.
        """
        raise UserError(f"{type(self).__name__} defines neither wish(t) nor decide(view)")

    @abstractmethod
    def spec(self) -> str:
        """The text form without the unit: `policy(p.spec(), p.unit)` equals p."""

    def draw(self, rng: random.Random, source_length: int) -> Policy:
        """The policy for one training sentence. Only a family of policies (multipath) draws at random."""
        return self

    def decoding_policy(self) -> Policy:
        """The default policy for decoding and validation."""
        return self

    def decide(self, view: View) -> Action:
        """READ or WRITE in live decoding. It is not called after the end of the source, where only WRITE is left."""
        if not view.ended and view.read < self.wish(view.written + 1):
            return Action.READ
        return Action.WRITE

    def checked_decision(self, view: View) -> Action:
        """Call `decide`, which may be custom code, and check that it returns an Action."""
        with self.reporting_errors():
            action = self.decide(view)
        if not isinstance(action, Action):
            raise UserError(f"{type(self).__name__}: decide(view) must be Action.READ or Action.WRITE, not {action!r}")
        return action

    @contextlib.contextmanager
    def reporting_errors(self) -> Iterator[None]:
        """Convert exceptions of the policy's own code into a UserError that names the policy."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"the policy {type(self).__name__} fails: {type(error).__name__}: {error}") from error

    def visible(self, source_length: int, target_length: int) -> list[int]:
        """Units that the training mask shows at each step: g(t) over the |x|+1 units, including the end."""
        return self._reads(source_length + 1, source_length + 1, target_length)

    def schedule(self, source_length: int, target_length: int) -> list[int]:
        """The paper's g(1) .. g(|y|), clipped to |x|.

        >>> policy("wait-k:3").schedule(6, 7)
        [3, 4, 5, 6, 6, 6, 6]
        """
        if source_length < 0 or target_length < 0:
            raise UserError("source and target length must be 0 or more")
        return self._reads(source_length, source_length + 1, target_length)

    def _reads(self, most: int, units: int, target_length: int) -> list[int]:
        """Units read before each step of a source with `units` units, clipped to `most`."""
        if type(self).decide is Policy.decide:
            with self.reporting_errors():
                wishes = accumulate((self.wish(t) for t in range(1, target_length + 1)), max)
                return [most if wish >= most else max(0, math.ceil(wish)) for wish in wishes]
        reads: list[int] = []
        read = 0
        for written in range(target_length):
            while read < units and self.checked_decision(View(read, written, ended=False)) is Action.READ:
                read += 1
            reads.append(min(read, most))
        return reads

    def fingerprint(self) -> list[int]:
        """Detects a changed policy behind the same name. The checksum of a custom file also covers edits that no
        schedule shows, such as a confidence threshold.
        """
        return self.schedule(100, 100) + ([self.file_checksum] if self.file_checksum else [])

    def __str__(self) -> str:
        written = self.file_name or self.spec()
        if self.unit == "word":
            return written
        return f"{written}{',' if ':' in written else ':'}unit={self.unit}"

    def __repr__(self) -> str:
        return f"policy({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def cut_off(schedule: Sequence[int], source_length: int) -> int:
    """The paper's tau: the first step that has read the whole source, or the last step if none has.

    >>> cut_off(policy("wait-k:2").schedule(7, 7), 7)
    6
    """
    for t, read in enumerate(schedule, start=1):
        if read >= source_length:
            return t
    return len(schedule)


def policy(spec: str | Policy | Callable[[int], Any] | Sequence[Any], unit: str | None = None) -> Policy:
    """Make a policy from its text form, from a function g(t), or from a list of g(1), g(2), ...

    >>> policy("wait-k:3,c=0.25").schedule(6, 7)
    [3, 4, 5, 5, 6, 6, 6]
    >>> policy([1, 1, 2, 4]).schedule(6, 6)
    [1, 1, 2, 4, 6, 6]
    >>> policy(lambda t: 2 * t, unit="piece").schedule(5, 4)
    [2, 4, 5, 5]
    """
    if isinstance(spec, Policy):
        if unit not in (None, spec.unit):
            raise UserError(f"{spec} counts in {spec.unit}, not in {unit}")
        return spec
    if isinstance(spec, str):
        return _parse(spec.strip(), unit)
    from stacl.policies._custom import CustomSchedule

    if callable(spec):
        return CustomSchedule(spec, getattr(spec, "__name__", "own"), unit or "word")
    if not isinstance(spec, Iterable):
        raise UserError(f"a policy must be text such as wait-k:3, a function g(t) or a list, not {spec!r}")
    return CustomSchedule(spec, "own", unit or "word")


def runs_code(spec: str) -> bool:
    """Whether making this policy executes a custom Python file.

    >>> runs_code("mine.py:g"), runs_code("wait-k:3")
    (True, False)
    """
    return spec.strip().partition(":")[0].endswith(".py")


def _parse(text: str, unit: str | None) -> Policy:
    name, _, rest = text.partition(":")
    if runs_code(text):
        from stacl.policies._custom import from_file

        return from_file(Path(name), rest, unit)
    if not name:
        raise UserError("no policy given; write for example wait-k:3, wait-k:3,c=0.25 or full")
    arguments, options = parse_arguments(rest)
    unit = resolve_unit(options.pop("unit", None), unit)
    kind = plugins.find("policies", name, Policy)  # type: ignore[type-abstract]
    return kind.parse(arguments, options, unit)


def resolve_unit(written: str | None, given: str | None) -> str:
    if written and given and written != given:
        raise UserError(f"the policy has unit={written}, but {given} was requested; give only one unit")
    return written or given or "word"


def parse_arguments(text: str) -> tuple[list[str], dict[str, str]]:
    """Parse `3,c=0.25` into (["3"], {"c": "0.25"})."""
    plain: list[str] = []
    named: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if equals and key.strip() in named:
            raise UserError(f"{key.strip()} is given twice, {named[key.strip()]} and {value.strip()}; give it once")
        if equals:
            named[key.strip()] = value.strip()
        else:
            plain.append(part)
    return plain, named


def reject_unknown(name: str, arguments: Sequence[str], options: dict[str, str], known: Sequence[str]) -> None:
    """Raise an error for arguments and options that the policy does not have."""
    if arguments:
        raise UserError(f"{name} has no argument {arguments[0]!r}")
    for key in options:
        if key not in known:
            raise UserError(f"{name} has no option {key!r}{suggest(key, [*known, 'unit'])}")
