"""A user's own policy: g(t) as a function or a list, or a class in a file of his."""

from __future__ import annotations

import importlib.util
import math
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stacl.policies.base import Policy, one_unit, policy, refuse_rest, written_arguments
from stacl.support.errors import UserError, suggest


class CustomSchedule(Policy):
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


def from_file(path: Path, name: str, unit: str | None) -> Policy:
    """`path/to/file.py:Name`, where Name is a function g(t), a list, a Policy, or a class of one."""
    name, _, rest = name.partition(",")
    arguments, options = written_arguments(rest)
    said = options.pop("unit", None) or unit
    unit = one_unit(said, unit)
    refuse_rest(str(path), arguments, options, ())
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
        except UserError:
            raise
        except Exception as error:
            made = f"{path}:{name} cannot be made as {name}(unit={unit!r})"
            raise UserError(f"{made}: {type(error).__name__}: {error}") from error
    if not isinstance(found, Policy) and not callable(found) and not isinstance(found, Sequence):
        raise UserError(f"{path}:{name} must be a function g(t), a list or a Policy, not {type(found).__name__}")
    made_of = policy(found, said) if isinstance(found, Policy) else CustomSchedule(found, f"{path}:{name}", unit)
    made_of.file_name = f"{path}:{name}"
    made_of.file_checksum = zlib.crc32(path.read_bytes())
    return made_of
