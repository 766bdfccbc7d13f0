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

import importlib.util
import math
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate
from pathlib import Path
from typing import Any

from stacl import plugins
from stacl.errors import UserError, suggest

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


class Policy(ABC):
    """A reading policy: it defines `wish`, or overrides `decide`."""

    reads_all = True  # False: it may end its output without having seen the end of the source

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

    def settled(self) -> Policy:
        """The single policy to decode and validate with, where nothing says otherwise."""
        return self

    def decide(self, view: View) -> Action:
        """READ or WRITE, live. Not asked after the end of the source: there is nothing left but to write."""
        if not view.ended and view.read < self.wish(view.written + 1):
            return Action.READ
        return Action.WRITE

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
            wishes = accumulate((self.wish(t) for t in range(1, target_length + 1)), max)
            return [most if wish >= most else max(0, math.ceil(wish)) for wish in wishes]
        reads: list[int] = []
        read = 0
        for written in range(target_length):
            while read < units and self.decide(View(read, written, ended=False)) is Action.READ:
                read += 1
            reads.append(min(read, most))
        return reads

    def outline(self) -> list[int]:
        """What tells a policy from one that had its name before: a file of one's own may have been edited."""
        return self.schedule(100, 100)

    def __str__(self) -> str:
        if self.unit == "word":
            return self.spec()
        return f"{self.spec()}{',' if ':' in self.spec() else ':'}unit={self.unit}"

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


class OwnSchedule(Policy):
    """A user's own g(t), from a function or a list. After a list's last entry the whole source is read."""

    def __init__(self, g: Callable[[int], Any] | Sequence[Any], name: str, unit: str = "word") -> None:
        super().__init__(unit)
        self.name = name
        self._g = g if callable(g) else _from_list(list(g))
        self._known: list[float] = [0]  # wishes by t, checked as they come; entry 0 stands for "before the first"

    def wish(self, t: int) -> float:
        known = self._known
        if len(known) <= t:
            known = known.copy()  # threads share a policy: they see a whole list, or the one before
            for step in range(len(known), t + 1):
                known.append(_checked(self._asked(step), step, known[-1], self.name))
            self._known = known
        return known[t]

    def _asked(self, step: int) -> Any:
        try:
            return self._g(step)
        except Exception as error:
            raise UserError(f"{self.name}: g({step}) fails: {type(error).__name__}: {error}") from error

    def spec(self) -> str:
        return self.name


def _from_list(values: list[Any]) -> Callable[[int], Any]:
    if not values:
        raise UserError("a policy given as a list needs at least one entry: g(1)")
    for step, value in enumerate(values, start=1):
        _checked(value, step, values[step - 2] if step > 1 else 0, f"list {values}")
    return lambda t: values[t - 1] if t <= len(values) else math.inf


def _checked(value: Any, step: int, before: float, name: str) -> float:
    """g(t) as a number, or what is wrong with it."""
    whole = isinstance(value, int) or (hasattr(value, "__index__") and not isinstance(value, str))
    if isinstance(value, bool) or not (whole or value == math.inf or (isinstance(value, float) and value.is_integer())):
        raise UserError(f"{name}: g({step}) must be a whole number or inf, not {value!r}")
    if value < 0:
        raise UserError(f"{name}: g({step}) = {value} is negative; a policy cannot read less than nothing")
    if value < before:
        raise UserError(f"{name}: g({step}) = {value} after {before}; a policy cannot unread what it has read")
    return math.inf if value == math.inf else int(value)


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
    if callable(spec):
        return OwnSchedule(spec, getattr(spec, "__name__", "own"), unit or "word")
    if not isinstance(spec, Iterable):
        raise UserError(f"a policy is written like wait-k:3, or is a function g(t) or a list, not {spec!r}")
    return OwnSchedule(spec, "own", unit or "word")


def runs_code(spec: str) -> bool:
    """Whether making this policy runs a file of somebody's own.

    >>> runs_code("mine.py:g"), runs_code("wait-k:3")
    (True, False)
    """
    return spec.strip().partition(":")[0].endswith(".py")


def _parse(text: str, unit: str | None) -> Policy:
    name, _, rest = text.partition(":")
    if runs_code(text):
        return _from_file(Path(name), rest, unit)
    if not name:
        raise UserError("a policy is needed, for example wait-k:3, wait-k:3,c=0.25 or full")
    arguments, options = _arguments(rest)
    unit = _one_unit(options.pop("unit", None), unit)
    kind = plugins.find("policies", name, Policy)  # type: ignore[type-abstract]
    return kind.parse(arguments, options, unit)


def _one_unit(written: str | None, given: str | None) -> str:
    if written and given and written != given:
        raise UserError(f"the policy says unit={written}, but {given} was asked for; say one of them")
    return written or given or "word"


def _arguments(text: str) -> tuple[list[str], dict[str, str]]:
    """`3,c=0.25` as (["3"], {"c": "0.25"})."""
    plain: list[str] = []
    named: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
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


def _from_file(path: Path, name: str, unit: str | None) -> Policy:
    """`path/to/file.py:Name`, where Name is a function g(t), a list, a Policy, or a class of one."""
    name, _, rest = name.partition(",")
    _, options = _arguments(rest)
    said = options.pop("unit", None) or unit
    unit = _one_unit(said, unit)
    refuse_rest(str(path), (), options, ())
    if not name:
        raise UserError(f"which policy of {path}? Write {path}:Name")
    if not path.is_file():
        raise UserError(f"no file {path} for the policy {path}:{name}")
    module_spec = importlib.util.spec_from_file_location(f"_stacl_policy_{path.stem}", path)
    assert module_spec is not None
    assert module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    sys.modules[module_spec.name] = module
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"{path} does not run: {type(error).__name__}: {error}") from error
    if not hasattr(module, name):
        public = [key for key in vars(module) if not key.startswith("_")]
        raise UserError(f"{path} has no {name!r}{suggest(name, public)}")
    found = getattr(module, name)
    if isinstance(found, type) and issubclass(found, Policy):
        try:
            found = found(unit=unit)
        except TypeError as error:
            raise UserError(f"{path}:{name} cannot be made as {name}(unit={unit!r}): {error}") from None
    if isinstance(found, Policy):
        return policy(found, said)
    if callable(found) or isinstance(found, Sequence):
        return OwnSchedule(found, f"{path}:{name}", unit)
    raise UserError(f"{path}:{name} must be a function g(t), a list or a Policy, not {type(found).__name__}")
