"""Custom policies: g(t) as a function or a list, or a Policy class in a Python file."""

from __future__ import annotations

import importlib.util
import math
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from stacl.policies.base import Policy, parse_arguments, policy, reject_unknown, resolve_unit
from stacl.support.errors import UserError, suggest


class CustomSchedule(Policy):
    """A custom g(t) from a function or a list. After the last entry of a list it reads the whole source."""

    def __init__(self, g: Callable[[int], Any] | Sequence[Any], name: str, unit: str = "word") -> None:
        super().__init__(unit)
        self.name = name
        self._g = g if callable(g) else _from_list(list(g))
        self._known: list[float] = [0]  # checked values of g(t), filled on demand; entry 0 is g(0)

    def wish(self, t: int) -> float:
        known = self._known
        if len(known) <= t:
            known = known.copy()  # threads share a policy and must never see a partly filled list
            for step in range(len(known), t + 1):
                known.append(_checked(self._call(step), step, known[-1], self.name))
            self._known = known
        return known[t]

    def _call(self, step: int) -> Any:
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
    """Validate g(step) and return it as an int or inf. `before` is g(step - 1)."""
    whole = isinstance(value, int) or (hasattr(value, "__index__") and not isinstance(value, str))
    if isinstance(value, bool) or not (whole or value == math.inf or (isinstance(value, float) and value.is_integer())):
        raise UserError(f"{name}: g({step}) must be a whole number or inf, not {value!r}")
    if value < 0:
        raise UserError(f"{name}: g({step}) = {value} is negative; it must be 0 or more")
    if value < before:
        raise UserError(f"{name}: g({step}) = {value} after {before}; g(t) must not decrease")
    return math.inf if value == math.inf else int(value)


def from_file(path: Path, name: str, unit: str | None) -> Policy:
    """Load `path/to/file.py:Name`, where Name is a function g(t), a list, a Policy or a Policy class."""
    name, _, rest = name.partition(",")
    arguments, options = parse_arguments(rest)
    requested = options.pop("unit", None) or unit
    unit = resolve_unit(requested, unit)
    reject_unknown(str(path), arguments, options, ())
    if not name:
        raise UserError(f"no policy name after {path}; write {path}:Name")
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
        raise UserError(f"cannot run {path}: {type(error).__name__}: {error}") from error
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
            call = f"{name}(unit={unit!r})"
            raise UserError(f"{path}: {call} fails: {type(error).__name__}: {error}") from error
    if not isinstance(found, Policy) and not callable(found) and not isinstance(found, Sequence):
        raise UserError(f"{path}:{name} must be a function g(t), a list or a Policy, not {type(found).__name__}")
    result = policy(found, requested) if isinstance(found, Policy) else CustomSchedule(found, f"{path}:{name}", unit)
    result.file_name = f"{path}:{name}"
    result.file_checksum = zlib.crc32(path.read_bytes())
    return result
