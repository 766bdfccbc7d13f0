"""A simulated speaker for measurements: words arrive at a steady pace, without real waiting."""

from __future__ import annotations

import bisect
import math
from dataclasses import replace

from stacl.support.errors import UserError
from stacl.traces.trace import Trace

PACE = 0.4  # seconds per word: 150 words per minute, a moderate pace


def check_pace(pace: float) -> None:
    if not 0 < pace < math.inf:
        raise UserError(f"the pace must be above 0 seconds per word and finite, not {pace:g}")


def since_first_sound(trace: Trace, pace: float) -> Trace:
    """Shift the times by `pace`: a session's clock starts when the first word arrives, not when it begins."""
    return replace(
        trace,
        read_times=tuple(pace + moment for moment in trace.read_times),
        write_times=tuple(pace + moment for moment in trace.write_times),
    )


def spoken(trace: Trace, pace: float) -> Trace:
    """Recompute the times of a trace as if a speaker needed `pace` seconds for each word.

    The trace was recorded without pauses, so its times are the computing time of each word. With a speaker, work on a
    word starts when the word has been spoken and the work on earlier words is done.

    >>> recorded = Trace(2, (1, 2), read_times=(0.0, 0.5), write_times=(0.25, 0.75))
    >>> spoken(recorded, 1.0).read_times, spoken(recorded, 1.0).write_times
    ((1.0, 2.0), (1.25, 2.25))
    >>> spoken(recorded, 0.25).write_times  # the speaker is faster than the system, which falls behind
    (0.5, 1.0)
    """
    recorded = trace.read_times
    spoken_at = [pace * number for number in range(1, len(recorded) + 1)]
    started: list[float] = []
    for number, moment in enumerate(spoken_at):
        free = started[-1] + recorded[number] - recorded[number - 1] if started else 0.0
        started.append(max(moment, free))
    during = [bisect.bisect_right(recorded, shown) - 1 for shown in trace.write_times]
    shown_at = tuple(started[i] + shown - recorded[i] for i, shown in zip(during, trace.write_times, strict=True))
    return replace(trace, read_times=tuple(spoken_at), write_times=shown_at)
