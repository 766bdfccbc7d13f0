"""SimulEval's instances.log, read and written: one JSON object a sentence, whose unit it does not say."""

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

_DIGITS = 18  # of a number that is written as text: what has more is a name
_AUDIO = re.compile(r"\.(wav|flac|mp3|ogg|opus|m4a|aac|webm|sph|pcm)(:\d+:\d+)?$", re.IGNORECASE)  # or a part of one


def _of_instance(instance: dict[str, Any], unit: str) -> Trace:
    prediction = validation.string("prediction", instance["prediction"])
    delays = validation.numbers("delays", instance["delays"])
    elapsed = validation.numbers("elapsed", instance.get("elapsed") or [])
    if elapsed and len(elapsed) != len(delays):
        raise UserError(f"elapsed has {len(elapsed)} entries, but there are {len(delays)} delays")
    length = validation.number("source_length", instance["source_length"])
    if unit != "ms" and (part := next((n for n in (length, *delays) if n % 1), None)):
        raise UserError(f"{part:g} is no number of {unit}s: a log of speech has fractions in its first line")
    if unit != "ms":  # SimulEval 1.0 counts the end of the source as one more word
        delays = tuple(length if delay == length + 1 else delay for delay in delays)
    source = instance.get("source")
    words = source.split() if isinstance(source, str) else []
    target = tuple(prediction.split())
    signs = unit == "char" or (unit == "ms" and len(target) < len(delays) == sum(map(len, target)))
    if unit == "piece":
        target = validation.strings("prediction_spm", instance.get("prediction_spm"))
    elif signs:
        # A space goes with the character before it: it is no unit, but the text needs it.
        target = tuple(re.findall(r"\S ?", " ".join(target)))
    reference = instance.get("reference")
    return Trace(
        # A speech log counts milliseconds with fractions; half a millisecond is no latency.
        source_length=round(length),
        delays=tuple(round(delay) for delay in delays),
        source=tuple(words) if len(words) == length else (),
        target=target,
        unit=unit,
        # For text input SimulEval writes zeros: it keeps no clock there. A word is shown after those before it, even
        # where a system has logged how long each took on its own.
        write_times=tuple(accumulate((time / 1000 for time in elapsed), max)) if any(elapsed) else (),
        reference=reference.strip() if isinstance(reference, str) else None,
        characters=unit == "ms" and signs,
    )


class Reader:
    """SimulEval's own reader takes the last of several lines with one index, whatever their order; here they are the
    sign of a log that was begun twice.
    """

    def __init__(self) -> None:
        self._index: int | None = None
        self._clipped = False  # which is said once

    def parse(self, line: bytes, unit: str) -> Trace:
        instance = _instance(line)
        index = _index(instance.get("index"))
        if index is not None:
            if self._index is not None and index <= self._index:
                raise UserError(
                    f"index {index} comes after {self._index}: is this the log of two runs, or out of order? "
                    "Sort it, one line an index"
                )
            self._index = index
        trace = _of_instance(instance, unit)
        if not self._clipped and unit != "ms" and max(instance["delays"], default=0) > trace.source_length:
            self._clipped = True
            print("stacl: this log counts the end of the source as a word; here it is none", file=sys.stderr)
        return trace


def _index(found: Any) -> int | None:
    """The number of a sentence, also as it looks after a way through a table: 3.0 or "3"."""
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
            "a log of speech output: its words are not in it; transcribe it, and log each with its delay as a trace"
        )
    return found


def unit_of(lines: Iterator[tuple[int, bytes]], name: str) -> tuple[str, Iterator[tuple[int, bytes]]]:
    """SimulEval does not log its unit: it is the one in which a prediction has as many parts as delays.

    A first line may fit words and characters alike, so lines are looked at until one decides.
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
        raise UserError(f"{count} delays, but the prediction has {len(words)} words")
    return fitting


def _is_speech(instance: dict[str, Any]) -> bool:
    """Speech has a length with a point, and files for a source, unless the one is only the length of the other: after a
    way through a table any number has a point.
    """
    source, length = instance.get("source"), instance["source_length"]
    units = source.split() if isinstance(source, str) else source if isinstance(source, list) else None
    if len(units) == length if units is not None else _looks_like_words(instance):
        return False
    recording = isinstance(source, str) and bool(_AUDIO.search(source.rstrip()))
    return recording or isinstance(length, float) or isinstance(source, list)


def _looks_like_words(instance: dict[str, Any]) -> bool:
    """Of a line without a source: whole numbers, no clock, and a delay for each word."""
    delays = validation.numbers("delays", instance["delays"])
    elapsed = validation.numbers("elapsed", instance.get("elapsed") or [])
    length = validation.number("source_length", instance["source_length"])
    words = validation.string("prediction", instance["prediction"]).split()
    return not any(number % 1 for number in (length, *delays)) and not any(elapsed) and len(words) == len(delays)


def line(number: int, trace: Trace) -> str:
    """A sentence as SimulEval logs it."""
    if trace.delays and not trace.target:
        raise UserError(f"sentence {number + 1} is only a path: SimulEval's format needs its words")
    pieces = trace.unit == "piece"
    instance: dict[str, Any] = {
        "index": number,
        "prediction": trace.text(),
        "delays": trace.delays,
        "elapsed": [1000 * time for time in trace.write_times] or [0] * len(trace.delays),
        "prediction_length": len(trace.delays),
        "reference": trace.reference or "",  # SimulEval has one format for both
        "source": "".join(trace.source).replace(SPACE_MARK, " ") if pieces else " ".join(trace.source),
        # SimulEval's own logs of speech have milliseconds with a point, by which they are known
        "source_length": float(trace.source_length) if trace.unit == "ms" else trace.source_length,
    }
    if pieces:
        instance["prediction_spm"] = trace.target
    elif (units := _units_in(trace)) != len(trace.delays):
        raise UserError(
            f"sentence {number + 1} cannot be written as SimulEval does: its {len(trace.delays)} target units "
            f"are {units} in a line of text (is one empty, or has it a space?)"
        )
    return json.dumps(instance, ensure_ascii=False)


def _units_in(trace: Trace) -> int:
    """Words or characters that a reader finds in the text."""
    words = trace.text().split()
    return len("".join(words)) if trace.counts_characters else len(words)
