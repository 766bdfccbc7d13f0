"""Validation of a trace. Each function returns what is wrong with it, or None."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stacl.traces.trace import Trace

_LONGEST_SOURCE = 2**53  # units; a float represents every whole number up to here
_LONGEST_TIME = 1e9  # seconds, about thirty years
_CLOCK_ERROR = 1e-3  # seconds; allows for rounded times


def number_problem(trace: Trace) -> str | None:
    """Units must be whole numbers, milliseconds may have fractions. NaN would pass all later comparisons."""
    if type(trace.source_length) is int and set(map(type, trace.delays)) <= {int}:
        return None
    for name, value in (("source_length", trace.source_length), *(("a delay", delay) for delay in trace.delays)):
        if not math.isfinite(value):
            return f"{name} is {value}; it must be a finite number"
        if trace.unit != "ms" and value % 1:
            return f"{name} is {value:g}; it counts source units and must be a whole number"
    return None


def path_problem(delays: tuple[int, ...], source_length: int) -> str | None:
    if source_length < 0:
        return f"source_length is {source_length}; it must be 0 or more"
    if source_length > _LONGEST_SOURCE:
        return f"source_length is a number of {len(str(source_length))} digits; the maximum is 2**53"
    if not delays or (delays[0] >= 0 and delays[-1] <= source_length and list(delays) == sorted(delays)):
        return None
    last = 0
    for t, delay in enumerate(delays, 1):
        if delay < last:
            if delay < 0:
                return f"target unit {t} has delay {delay}; it must be 0 or more"
            return f"delays decrease: target unit {t} has delay {delay} after {last}"
        if delay > source_length:
            return f"delay {delay} of target unit {t} exceeds the source length {source_length}"
        last = delay
    return None


def length_problem(trace: Trace) -> str | None:
    for name, found, expected, what in (
        ("source", trace.source, trace.source_length, "source_length"),
        ("target", trace.target, len(trace.delays), "the number of delays"),
        ("read_times", trace.read_times, trace.source_length, "source_length"),
        ("write_times", trace.write_times, len(trace.delays), "the number of delays"),
    ):
        if found and len(found) != expected:
            return f"{name} has {len(found)} entries, but {what} is {expected}"
    if trace.unit == "char" and (word := next((word for word in trace.target if len(word.strip()) > 1), "")):
        return f"{word!r} is more than one character; log it with unit word and score it with --unit char"
    return None


def clock_problem(trace: Trace) -> str | None:
    longest = max((trace.compute_seconds, *trace.read_times[-1:], *trace.write_times[-1:]))
    if longest > _LONGEST_TIME:
        return f"a time of {longest:g} seconds is too long for a sentence; the maximum is {_LONGEST_TIME:g}"
    if not trace.compute_seconds >= 0:
        return f"compute_seconds is {trace.compute_seconds:g}; it must be 0 or more"
    for name, times in (("read_times", trace.read_times), ("write_times", trace.write_times)):
        for number, (before, moment) in enumerate(pairwise((0.0, *times)), 1):
            if not moment >= before:
                return f"{name} decrease: entry {number} is {moment:g} after {before:g}"
    if trace.read_times and trace.write_times and trace.source_length == len(trace.read_times):
        for number, (delay, shown) in enumerate(zip(trace.delays, trace.write_times, strict=True), 1):
            if delay and shown < trace.read_times[delay - 1] - _CLOCK_ERROR:
                arrived = trace.read_times[delay - 1]
                return f"target unit {number} was shown at {shown:g} s, before its source unit {delay} at {arrived:g} s"
    return None
