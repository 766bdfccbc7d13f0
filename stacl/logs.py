"""Logs of read and write decisions, ours and other people's, one sentence a line.

    rw         0 or R for READ, 1 or W for WRITE, with or without spaces between them
    trace      our own JSON lines, everything that a Trace holds
    simuleval  SimulEval's instances.log, with the reference that it carries

Readers yield one sentence after the other and keep nothing; what is wrong with a line is said with file and
line.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate, chain
from pathlib import Path
from typing import IO, Any

from stacl import fields
from stacl.errors import UserError, suggest
from stacl.trace import SPACE_MARK, Trace

FORMATS = ("rw", "trace", "simuleval")
_READS_AND_WRITES = bytes.maketrans(b"RrWw", b"0011")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read(path: str | Path, format: str | None = None, unit: str | None = None) -> Iterator[Trace]:
    """The sentences of a log; `-` is stdin, a folder stands for the instances.log in it, the format is
    guessed.

    `unit` is what a log in rw counts in; the other formats say or show it themselves.
    """
    if format is not None and format not in FORMATS:
        raise UserError(f"unknown format {format!r}{suggest(format, FORMATS)}")
    with _opened(path) as (stream, name):
        first = stream.readline().removeprefix(_BYTE_ORDER_MARK)
        if not first:
            raise UserError(f"{name} is empty: expected one sentence a line")
        format = format or _guess(first, name)
        lines: Iterator[tuple[int, bytes]] = enumerate(chain([first], stream), 1)
        unit = unit if unit and format == "rw" else "word"
        if format == "simuleval":
            unit, lines = _simuleval_unit(lines, name)
        parse = READERS[format]()
        for number, line in lines:
            try:
                yield parse(line, unit)
            except UserError as error:
                raise UserError(f"{name}:{number}: {error}") from None


def read_lines(path: str | Path) -> list[str]:
    """The lines of a text file, as sacreBLEU sees them: without line ends, empty ones kept."""
    found = []
    with _opened(path) as (stream, name):
        for number, line in enumerate(stream, 1):
            try:
                found.append(_text(line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line).rstrip("\r\n"))
            except UserError as error:
                raise UserError(f"{name}:{number}: {error}") from None
    return found


def write(traces: Iterable[Trace], path: str | Path, format: str) -> int:
    """Write sentences as a log and return how many there were; `-` is stdout."""
    return sum(1 for _ in passed_on(traces, path, format))


def passed_on(traces: Iterable[Trace], path: str | Path, format: str) -> Iterator[Trace]:
    """The same traces one by one, each written to a log on its way."""
    if format not in FORMATS:
        raise UserError(f"unknown format {format!r}{suggest(format, FORMATS)}")
    line = WRITERS[format]
    with _writable(path) as stream:
        for number, trace in enumerate(traces):
            try:
                stream.write(line(number, trace) + "\n")
            except UnicodeEncodeError:  # half of a surrogate pair, which JSON can spell and nobody can write out
                raise UserError(f"sentence {number + 1} holds half a character, which cannot be written") from None
            yield trace


@contextmanager
def _writable(path: str | Path) -> Iterator[IO[str]]:
    """A file that takes its name once it is whole: the one before may be what is being read."""
    if str(path) == "-":
        yield sys.stdout
        return
    path = Path(path)
    partial = path.with_name(f".partial-{path.name}")
    try:
        stream = partial.open("w", encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    try:
        with stream:
            yield stream
        partial.replace(path)
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def _opened(path: str | Path) -> Iterator[tuple[IO[bytes], str]]:
    if str(path) == "-":
        if sys.stdin is None:
            raise UserError("there is no standard input to read")
        yield sys.stdin.buffer, "stdin"
        return
    if Path(path).is_dir():
        path = Path(path) / "instances.log"
    try:
        stream = Path(path).open("rb")  # noqa: SIM115 - the reader may fail for other reasons
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    with stream:
        yield stream, str(path)


def _guess(line: bytes, name: str) -> str:
    if line.lstrip().startswith(b"{"):
        return "simuleval" if re.search(rb'"prediction"\s*:', line) else "trace"
    if line.strip() and not line.translate(None, b"01RWrw \t\r\n"):
        return "rw"
    raise UserError(
        f"{name}:1: cannot tell the format of this line; expected 0/R and 1/W, a JSON trace or SimulEval's "
        f"instances.log (or say --format {'|'.join(FORMATS)})"
    )


def _text(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"not UTF-8 (byte {error.start + 1} of the line)") from None


def _parse_rw(line: bytes, unit: str) -> Trace:
    path = line.translate(_READS_AND_WRITES, b" \t\r\n")
    wrong = path.translate(None, b"01")
    if wrong or not path:
        found = f"found {wrong.decode(errors='replace')[0]!r}" if wrong else "the line is empty"
        raise UserError(f"expected 0 or R (read) and 1 or W (write), {found}")
    # Between two writes stand the reads: their running sum is the delay of each write.
    reads = list(accumulate(map(len, path.split(b"1"))))
    return Trace(source_length=reads.pop(), delays=tuple(reads), unit=unit)


def _parse_trace(line: bytes, unit: str) -> Trace:
    if not line.strip():
        raise UserError("the line is empty; expected a JSON trace")
    return Trace.from_json(_text(line))


def _of_instance(instance: dict[str, Any], unit: str) -> Trace:
    prediction = fields.string("prediction", instance["prediction"])
    delays = fields.numbers("delays", instance["delays"])
    elapsed = fields.numbers("elapsed", instance.get("elapsed") or [])
    length = fields.number("source_length", instance["source_length"])
    if unit != "ms" and (part := next((n for n in (length, *delays) if n % 1), None)):
        raise UserError(f"{part:g} is no number of {unit}s: a log of speech has fractions in its first line")
    source = instance.get("source")
    words = source.split() if isinstance(source, str) else []
    target = tuple(prediction.split())
    if unit == "piece":
        target = fields.strings("prediction_spm", instance.get("prediction_spm"))
    elif unit == "char" or (unit == "ms" and len(target) < len(delays) == sum(map(len, target))):
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
        reference=reference.strip() if isinstance(reference, str) else "",
    )


class _SimulEval:
    """SimulEval's own reader takes the last of several lines with one index, whatever their order; here they are the
    sign of a log that was begun twice.
    """

    def __init__(self) -> None:
        self._index: int | None = None

    def parse(self, line: bytes, unit: str) -> Trace:
        instance = _instance(line)
        index = instance.get("index")
        if isinstance(index, int):
            if self._index is not None and index <= self._index:
                raise UserError(
                    f"index {index} comes after {self._index}: is this the log of two runs, or out of order? "
                    "Sort it, one line an index"
                )
            self._index = index
        return _of_instance(instance, unit)


def _instance(line: bytes) -> dict[str, Any]:
    text = _text(line)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise UserError("expected a JSON object, as in SimulEval's instances.log")
    for field in ("prediction", "delays", "source_length"):
        if field not in found:
            raise UserError(f"the field {field!r} is missing; is this SimulEval's instances.log?")
    return found


def _simuleval_unit(lines: Iterator[tuple[int, bytes]], name: str) -> tuple[str, Iterator[tuple[int, bytes]]]:
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
    count = len(fields.numbers("delays", instance["delays"]))
    words = fields.string("prediction", instance["prediction"]).split()
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
    if units is not None and len(units) == length:
        return False
    return isinstance(length, float) or isinstance(source, list)


def _rw_line(number: int, trace: Trace) -> str:
    if not (trace.source_length or trace.delays):
        raise UserError(f"sentence {number + 1} is empty: a log of R and W has no line for it")
    if trace.unit == "ms":
        raise UserError("a log in milliseconds has no units to read one by one: R and W cannot say it")
    return " ".join(trace.actions())


def _simuleval_line(number: int, trace: Trace) -> str:
    if trace.delays and not trace.target:
        raise UserError(f"sentence {number + 1} is only a path: SimulEval's format needs its words")
    pieces = trace.unit == "piece"
    instance: dict[str, Any] = {
        "index": number,
        "prediction": trace.text(),
        "delays": trace.delays,
        "elapsed": [1000 * time for time in trace.write_times] or [0] * len(trace.delays),
        "prediction_length": len(trace.delays),
        "reference": trace.reference,
        "source": "".join(trace.source).replace(SPACE_MARK, " ") if pieces else " ".join(trace.source),
        # SimulEval's own logs of speech have milliseconds with a point, by which they are known
        "source_length": float(trace.source_length) if trace.unit == "ms" else trace.source_length,
    }
    if pieces:
        instance["prediction_spm"] = trace.target
    return json.dumps(instance, ensure_ascii=False)


READERS: dict[str, Callable[[], Callable[[bytes, str], Trace]]] = {
    "rw": lambda: _parse_rw,
    "trace": lambda: _parse_trace,
    "simuleval": lambda: _SimulEval().parse,
}
WRITERS: dict[str, Callable[[int, Trace], str]] = {
    "rw": _rw_line,
    "trace": lambda number, trace: trace.to_json(),
    "simuleval": _simuleval_line,
}
