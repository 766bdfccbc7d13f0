"""Type checks for values from foreign JSON. Each returns the value, or raises a UserError that shows it."""

from __future__ import annotations

import math
from typing import Any

from stacl.support.errors import UserError


def whole(name: str, value: Any) -> int:
    if type(value) is not int:
        raise UserError(f"{name} must be a whole number, not {value!r}")
    return value


def wholes(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        raise UserError(f"{name} must be a list, not {value!r}")
    if not set(map(type, value)) <= {int}:
        wrong = next(item for item in value if type(item) is not int)
        raise UserError(f"{name} must hold whole numbers, not {wrong!r}")
    return tuple(value)


def number(name: str, value: Any) -> float:
    try:
        if type(value) in (int, float) and math.isfinite(value):
            return float(value)
    except OverflowError:  # an integer with hundreds of digits
        value = f"{str(value)[:20]}..."
    raise UserError(f"{name} must be a number, not {value!r}")


def numbers(name: str, value: Any) -> tuple[float, ...]:
    if not isinstance(value, list):
        raise UserError(f"{name} must be a list, not {value!r}")
    return tuple(number(name, item) for item in value)


def string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UserError(f"{name} must be text, not {value!r}")
    return value


def boolean(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UserError(f"{name} must be true or false, not {value!r}")
    return value


def strings(name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not set(map(type, value)) <= {str}:
        raise UserError(f"{name} must be a list of strings")
    return tuple(value)


def decoded(line: bytes) -> str:
    """Decode a line of a file as UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"not UTF-8 (byte {error.start + 1} of the line)") from None
