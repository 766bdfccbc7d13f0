"""A speaker for measurements: words come at a steady pace, on a clock that nobody has to sit through."""

from __future__ import annotations

import bisect
import math
from dataclasses import replace

from stacl.support.errors import UserError
from stacl.traces.trace import Trace

PACE = 0.4  # seconds a word: 150 words a minute, an unhurried speaker


def check_pace(pace: float) -> None:
    if not 0 < pace < math.inf:
        raise UserError(f"the pace must be above 0 seconds per word, not {pace:g}")


def since_first_sound(trace: Trace, pace: float) -> Trace:
    """A session's clock begins when the first word has come; a speaker began to say it `pace` seconds before."""
    return replace(
        trace,
        read_times=tuple(pace + moment for moment in trace.read_times),
        write_times=tuple(pace + moment for moment in trace.write_times),
    )


def spoken(trace: Trace, pace: float) -> Trace:
    """The sentence as a listener would have had it from a speaker who says a word in `pace` seconds.

    The words were given to the machine as fast as it took them, so the times of the trace say how long it worked on
    each. Before a speaker it begins with a word once that is said and the work on those before it is done. Nobody has
    to sit through the waiting.

    >>> given = Trace(2, (1, 2), read_times=(0.0, 0.5), write_times=(0.25, 0.75))
    >>> spoken(given, 1.0).read_times, spoken(given, 1.0).write_times
    ((1.0, 2.0), (1.25, 2.25))
    >>> spoken(given, 0.25).write_times  # faster than the machine: it falls behind
    (0.5, 1.0)
    """
    given = trace.read_times
    said = [pace * number for number in range(1, len(given) + 1)]
    begun: list[float] = []
    for number, moment in enumerate(said):
        free = begun[-1] + given[number] - given[number - 1] if begun else 0.0
        begun.append(max(moment, free))
    during = [bisect.bisect_right(given, shown) - 1 for shown in trace.write_times]
    shown_at = tuple(begun[i] + shown - given[i] for i, shown in zip(during, trace.write_times, strict=True))
    return replace(trace, read_times=tuple(said), write_times=shown_at)
