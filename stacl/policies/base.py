"""The hinge between training and live: a policy is one fact, g(t), and everything else is derived from it.

`Policy.wish(t)` says how many source units a policy wants to have read before it decides target unit t (t from 1). The
end of the source is one more unit, read after the last word, so over |x| words the wish is served up to |x|+1:

* `visible(|x|, |y|)` is min(wish, |x|+1), what the training mask shows;
* `decide(view)` is READ while fewer than wish(t) units were read and the source goes on, what happens live;
* `schedule(|x|, |y|)` is min(wish, |x|), the paper's g(t), what people see and what is scored.

One `wish` gives all three, so training and live cannot disagree. A policy that overrides `decide` has the other two
from going through it step by step.
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
    """What a policy may know when it decides: nothing of the source that was not read."""

    read: int  # source units read so far, the end counted as one
    written: int  # target units finished so far
    ended: bool  # the end of the source has been read
    confidence: float | None = None  # the probability of the likeliest next piece, for a policy that `needs_confidence`


class Policy(ABC):
    """A reading policy: it defines `wish`, or overrides `decide`."""

    reads_all = True  # False: it may end its output without having seen the end of the source
    needs_confidence = False  # True: before it writes, it is asked again with `view.confidence`
    file_name = ""  # `file.py:Name`, if it was made by a file of somebody's own: two of them may say the same spec
    file_checksum = 0  # of that file

    def __init__(self, unit: str = "word") -> None:
        if unit not in UNITS:
            raise UserError(f"a policy counts in word or piece, not in {unit!r}{suggest(unit, UNITS)}")
        self.unit = unit

    @classmethod
    def parse(cls, arguments: list[str], options: dict[str, str], unit: str) -> Policy:
        """The policy written as `name:argument,option=value`; the base takes neither."""
        refuse_rest(cls.__module__.rpartition(".")[2], arguments, options, ())
        return cls(unit)

    def wish(self, t: int) -> float:
        """Source units, the end counted as one, wanted before target unit t is decided. math.inf: all of it.

        Of a fraction the next whole number is read, and after a larger wish a smaller one changes nothing.
        """
        raise UserError(f"{type(self).__name__} defines neither wish(t) nor decide(view)")

    @abstractmethod
    def spec(self) -> str:
        """How this policy is written, without its unit: `policy(p.spec(), p.unit)` is p again."""

    def draw(self, rng: random.Random, source_length: int) -> Policy:
        """The policy for one training sentence. Only a family of policies (multipath) has something to draw."""
        return self

    def decoding_policy(self) -> Policy:
        """The single policy to decode and validate with, where nothing says otherwise."""
        return self

    def decide(self, view: View) -> Action:
        """READ or WRITE, live. Not asked after the end of the source: there is nothing left but to write."""
        if not view.ended and view.read < self.wish(view.written + 1):
            return Action.READ
        return Action.WRITE

    def checked_decision(self, view: View) -> Action:
        """What `decide` says, which may be somebody's own: that it is an action, or what is wrong with it."""
        with self.reporting_errors():
            action = self.decide(view)
        if not isinstance(action, Action):
            raise UserError(f"{type(self).__name__}: decide(view) must be Action.READ or Action.WRITE, not {action!r}")
        return action

    @contextlib.contextmanager
    def reporting_errors(self) -> Iterator[None]:
        """What goes wrong inside is the policy's fault, and is said so in one line."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"the policy {type(self).__name__} fails: {type(error).__name__}: {error}") from error

    def visible(self, source_length: int, target_length: int) -> list[int]:
        """Units that the training mask shows at each step, the end counted: g(t) over the |x|+1 model units."""
        return self._served(source_length + 1, source_length + 1, target_length)

    def schedule(self, source_length: int, target_length: int) -> list[int]:
        """The paper's g(1) .. g(|y|), clipped to |x|.

        >>> policy("wait-k:3").schedule(6, 7)
        [3, 4, 5, 6, 6, 6, 6]
        """
        if source_length < 0 or target_length < 0:
            raise UserError("lengths of source and target cannot be negative")
        return self._served(source_length, source_length + 1, target_length)

    def _served(self, most: int, units: int, target_length: int) -> list[int]:
        """Units read before each step, at most `most`, of a source that has `units` of them."""
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
        """What tells a policy from one that had its name before: a file of one's own may have been edited, also in what
        no schedule shows, such as how sure the model has to be.
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
    """The paper's tau: the first step that has the whole source, or the last step if none has.

    >>> cut_off(policy("wait-k:2").schedule(7, 7), 7)
    6
    """
    for t, read in enumerate(schedule, start=1):
        if read >= source_length:
            return t
    return len(schedule)


def policy(spec: str | Policy | Callable[[int], Any] | Sequence[Any], unit: str | None = None) -> Policy:
    """A policy from how it is written, from a function g(t), or from a list of g(1), g(2), ...

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
        raise UserError(f"a policy is written like wait-k:3, or is a function g(t) or a list, not {spec!r}")
    return CustomSchedule(spec, "own", unit or "word")


def runs_code(spec: str) -> bool:
    """Whether making this policy runs a file of somebody's own.

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
        raise UserError("a policy is needed, for example wait-k:3, wait-k:3,c=0.25 or full")
    arguments, options = written_arguments(rest)
    unit = one_unit(options.pop("unit", None), unit)
    kind = plugins.find("policies", name, Policy)  # type: ignore[type-abstract]
    return kind.parse(arguments, options, unit)


def one_unit(written: str | None, given: str | None) -> str:
    if written and given and written != given:
        raise UserError(f"the policy says unit={written}, but {given} was asked for; say one of them")
    return written or given or "word"


def written_arguments(text: str) -> tuple[list[str], dict[str, str]]:
    """`3,c=0.25` as (["3"], {"c": "0.25"})."""
    plain: list[str] = []
    named: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if equals and key.strip() in named:
            raise UserError(f"{key.strip()} is given twice, {named[key.strip()]} and {value.strip()}; say one of them")
        if equals:
            named[key.strip()] = value.strip()
        else:
            plain.append(part)
    return plain, named


def refuse_rest(name: str, arguments: Sequence[str], options: dict[str, str], known: Sequence[str]) -> None:
    """What a policy was given and does not understand is an error, not silence."""
    if arguments:
        raise UserError(f"{name} does not understand {arguments[0]!r}")
    for key in options:
        if key not in known:
            raise UserError(f"{name} has no option {key!r}{suggest(key, [*known, 'unit'])}")
