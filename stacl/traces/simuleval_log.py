"""Reading and writing SimulEval's instances.log: one JSON object per sentence, without the unit of latency."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from itertools import accumulate, chain
from typing import Any

from stacl.support import validation
from stacl.support.errors import UserError
from stacl.traces.trace import SPACE_MARK, Trace

_DIGITS = 18  # of an index written as text; longer digit strings are names, not numbers
_AUDIO = re.compile(r"\.(wav|flac|mp3|ogg|opus|m4a|aac|webm|sph|pcm)(:\d+:\d+)?$", re.IGNORECASE)  # or a segment


def _to_trace(instance: dict[str, Any], unit: str) -> Trace:
    prediction = validation.string("prediction", instance["prediction"])
    delays = validation.numbers("delays", instance["delays"])
    elapsed = validation.numbers("elapsed", instance.get("elapsed") or [])
    if elapsed and len(elapsed) != len(delays):
        raise UserError(f"elapsed has {len(elapsed)} entries, but there are {len(delays)} delays")
    length = validation.number("source_length", instance["source_length"])
    if unit != "ms" and (fraction := next((n for n in (length, *delays) if n % 1), None)):
        raise UserError(f"{fraction:g} is not a whole number of {unit}s; only a log of speech may have fractions")
    if unit != "ms":  # SimulEval 1.0 counts the end of the source as one more word
        delays = tuple(length if delay == length + 1 else delay for delay in delays)
    source = instance.get("source")
    words = source.split() if isinstance(source, str) else []
    target = tuple(prediction.split())
    characters = unit == "char" or (unit == "ms" and len(target) < len(delays) == sum(map(len, target)))
    if unit == "piece":
        target = validation.strings("prediction_spm", instance.get("prediction_spm"))
    elif characters:
        # A space is attached to the character before it: it is not a unit, but part of the text.
        target = tuple(re.findall(r"\S ?", " ".join(target)))
    reference = instance.get("reference")
    return Trace(
        # Speech logs have fractions of milliseconds, which do not matter for latency.
        source_length=round(length),
        delays=tuple(round(delay) for delay in delays),
        source=tuple(words) if len(words) == length else (),
        target=target,
        unit=unit,
        # For text input SimulEval writes zeros instead of times. The running maximum corrects systems that log the
        # time of each word on its own: a word is not shown before an earlier one.
        write_times=tuple(accumulate((time / 1000 for time in elapsed), max)) if any(elapsed) else (),
        reference=reference.strip() if isinstance(reference, str) else None,
        characters=unit == "ms" and characters,
    )


class Reader:
    """Parses line by line and requires increasing indices: a repeated index means that the log holds two runs.
    (SimulEval itself silently keeps the last line of an index.)
    """

    def __init__(self) -> None:
        self._index: int | None = None
        self._clipped = False  # the warning was printed

    def parse(self, line: bytes, unit: str) -> Trace:
        instance = _instance(line)
        index = _index(instance.get("index"))
        if index is not None:
            if self._index is not None and index <= self._index:
                raise UserError(
                    f"index {index} comes after {self._index}; the log holds two runs or is not sorted. "
                    "Sort it and keep one line per index"
                )
            self._index = index
        trace = _to_trace(instance, unit)
        if not self._clipped and unit != "ms" and max(instance["delays"], default=0) > trace.source_length:
            self._clipped = True
            print("stacl: this log counts the end of the source as a word; it is not counted here", file=sys.stderr)
        return trace


def _index(found: Any) -> int | None:
    """The sentence number. Spreadsheet and data frame exports may turn it into 3.0 or "3"."""
    if isinstance(found, str) and found.isascii() and found.isdecimal() and len(found) <= _DIGITS:
        return int(found)
    return int(found) if isinstance(found, int | float) and found % 1 == 0 else None


def _instance(line: bytes) -> dict[str, Any]:
    text = validation.decoded(line)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise UserError("expected a JSON object, as in SimulEval's instances.log")
    for field in ("prediction", "delays", "source_length"):
        if field not in found:
            raise UserError(f"the field {field!r} is missing; is this SimulEval's instances.log?")
    if "durations" in found or "intervals" in found:
        raise UserError(
            "logs of speech output are not supported: they hold no words; transcribe the output and log it as a trace"
        )
    return found


def unit_of(lines: Iterator[tuple[int, bytes]], name: str) -> tuple[str, Iterator[tuple[int, bytes]]]:
    """The unit of a log and all of its lines. SimulEval does not log the unit.

    It is the unit in which a prediction has as many parts as delays. A line may fit both words and characters, so lines
    are read until one is unambiguous.
    """
    seen = []
    for number, line in lines:
        seen.append((number, line))
        try:
            fitting = _fitting_units(_instance(line))
        except UserError as error:
            raise UserError(f"{name}:{number}: {error}") from None
        if len(fitting) == 1:
            return fitting[0], chain(seen, lines)
    return "word", iter(seen)


def _fitting_units(instance: dict[str, Any]) -> list[str]:
    if _is_speech(instance):
        return ["ms"]
    if "prediction_spm" in instance:
        return ["piece"]
    count = len(validation.numbers("delays", instance["delays"]))
    words = validation.string("prediction", instance["prediction"]).split()
    lengths = {"word": len(words), "char": len("".join(words))}
    fitting = [unit for unit, length in lengths.items() if length == count]
    if not fitting:
        raise UserError(f"{count} delays, but the prediction has {len(words)} words; the numbers must be equal")
    return fitting


def _is_speech(instance: dict[str, Any]) -> bool:
    """Speech logs have a fractional source length and audio files as source. A data frame export also turns the lengths
    of text into 3.0, so a length that equals the number of source words means text.
    """
    source, length = instance.get("source"), instance["source_length"]
    units = source.split() if isinstance(source, str) else source if isinstance(source, list) else None
    if len(units) == length if units is not None else _looks_like_words(instance):
        return False
    recording = isinstance(source, str) and bool(_AUDIO.search(source.rstrip()))
    return recording or isinstance(length, float) or isinstance(source, list)


def _looks_like_words(instance: dict[str, Any]) -> bool:
    """For a line without a source: whole numbers, no times, and one delay per word."""
    delays = validation.numbers("delays", instance["delays"])
    elapsed = validation.numbers("elapsed", instance.get("elapsed") or [])
    length = validation.number("source_length", instance["source_length"])
    words = validation.string("prediction", instance["prediction"]).split()
    return not any(number % 1 for number in (length, *delays)) and not any(elapsed) and len(words) == len(delays)


def line(number: int, trace: Trace) -> str:
    """Format a sentence as a line of instances.log."""
    if trace.delays and not trace.target:
        raise UserError(f"sentence {number + 1} has no target words; the format simuleval needs them")
    pieces = trace.unit == "piece"
    instance: dict[str, Any] = {
        "index": number,
        "prediction": trace.text(),
        "delays": trace.delays,
        "elapsed": [1000 * time for time in trace.write_times] or [0] * len(trace.delays),
        "prediction_length": len(trace.delays),
        "reference": trace.reference or "",  # SimulEval does not distinguish an empty reference from none
        "source": "".join(trace.source).replace(SPACE_MARK, " ") if pieces else " ".join(trace.source),
        # As in SimulEval's own speech logs: `_is_speech` recognises them by the float.
        "source_length": float(trace.source_length) if trace.unit == "ms" else trace.source_length,
    }
    if pieces:
        instance["prediction_spm"] = trace.target
    elif (units := _count_units(trace)) != len(trace.delays):
        raise UserError(
            f"sentence {number + 1} cannot be written in the format simuleval: its {len(trace.delays)} target units "
            f"become {units} in a line of text (a unit is empty or contains a space)"
        )
    return json.dumps(instance, ensure_ascii=False)


def _count_units(trace: Trace) -> int:
    """The number of words or characters that a parser finds in the text."""
    words = trace.text().split()
    return len("".join(words)) if trace.counts_characters else len(words)
