"""Logs of read and write decisions in three formats, one sentence per line.

    rw         0 or R for READ, 1 or W for WRITE, with or without spaces between them
    trace      JSON lines with all fields of a Trace
    simuleval  SimulEval's instances.log, including its reference

Readers yield one sentence at a time and keep none in memory. Errors name file and line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate, chain
from pathlib import Path
from typing import IO

from stacl.support import validation
from stacl.support.errors import UserError, suggest
from stacl.traces import simuleval_log
from stacl.traces.trace import Trace

FORMATS = ("rw", "trace", "simuleval")
_READS_AND_WRITES = bytes.maketrans(b"RrWw", b"0011")
_LONGEST_PATH = 10**7  # source units; the rw format writes an R for each, which must fit into memory
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read(path: str | Path, format: str | None = None, unit: str | None = None) -> Iterator[Trace]:
    """The sentences of a log. `-` is stdin; a folder stands for the instances.log in it.

    format  one of FORMATS; detected from the first line if None
    unit    the unit of an rw log (default word); the other formats determine it themselves
    """
    if format is not None and format not in FORMATS:
        raise UserError(f"unknown format {format!r}{suggest(format, FORMATS)}")
    with _open(path) as (stream, name):
        first = stream.readline().removeprefix(_BYTE_ORDER_MARK)
        if not first:
            raise UserError(f"{name} is empty; expected one sentence per line")
        format = format or _detect_format(first, name)
        lines: Iterator[tuple[int, bytes]] = enumerate(chain([first], stream), 1)
        unit = unit if unit and format == "rw" else "word"
        if format == "simuleval":
            unit, lines = simuleval_log.unit_of(lines, name)
        parse = READERS[format]()
        for number, line in lines:
            try:
                yield parse(line, unit)
            except UserError as error:
                raise UserError(f"{name}:{number}: {error}") from None


def read_lines(path: str | Path) -> list[str]:
    """The lines of a text file as sacreBLEU reads them: without line ends, empty lines included."""
    found = []
    with _open(path) as (stream, name):
        for number, line in enumerate(stream, 1):
            try:
                text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
                found.append(validation.decoded(text).rstrip("\r\n"))
            except UserError as error:
                raise UserError(f"{name}:{number}: {error}") from None
    return found


def write(traces: Iterable[Trace], path: str | Path, format: str) -> int:
    """Write sentences as a log and return their number; `-` is stdout."""
    return sum(1 for _ in passed_on(traces, path, format))


def passed_on(traces: Iterable[Trace], path: str | Path, format: str) -> Iterator[Trace]:
    """Yield the same traces, and write each to a log before it is yielded."""
    if format not in FORMATS:
        raise UserError(f"unknown format {format!r}{suggest(format, FORMATS)}")
    line = WRITERS[format]
    with _open_for_writing(path) as stream:
        for number, trace in enumerate(traces):
            try:
                stream.write(line(number, trace) + "\n")
            except UnicodeEncodeError:  # JSON can hold an unpaired surrogate, UTF-8 cannot
                raise UserError(f"sentence {number + 1} has an unpaired surrogate, which UTF-8 cannot encode") from None
            yield trace


@contextmanager
def _open_for_writing(path: str | Path) -> Iterator[IO[str]]:
    """Write to a temporary file and rename it at the end: the input may be the same file."""
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
def _open(path: str | Path) -> Iterator[tuple[IO[bytes], str]]:
    if str(path) == "-":
        if sys.stdin is None:
            raise UserError("cannot read -: there is no standard input")
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


def _detect_format(line: bytes, name: str) -> str:
    if line.lstrip().startswith(b"{"):
        return "simuleval" if re.search(rb'"prediction"\s*:', line) else "trace"
    if line.strip() and not line.translate(None, b"01RWrw \t\r\n"):
        return "rw"
    raise UserError(
        f"{name}:1: cannot detect the format of this line; expected 0/R and 1/W, a JSON trace or SimulEval's "
        f"instances.log (or give --format {'|'.join(FORMATS)})"
    )


def _parse_rw(line: bytes, unit: str) -> Trace:
    path = line.translate(_READS_AND_WRITES, b" \t\r\n")
    wrong = path.translate(None, b"01")
    if wrong or not path:
        found = f"found {wrong.decode(errors='replace')[0]!r}" if wrong else "the line is empty"
        raise UserError(f"expected 0 or R (read) and 1 or W (write), {found}")
    # The running sum of the reads between two writes is the delay of each write.
    reads = list(accumulate(map(len, path.split(b"1"))))
    return Trace(source_length=reads.pop(), delays=tuple(reads), unit=unit)


def _parse_trace(line: bytes, unit: str) -> Trace:
    if not line.strip():
        raise UserError("the line is empty; expected a JSON trace")
    return Trace.from_json(validation.decoded(line))


def _rw_line(number: int, trace: Trace) -> str:
    if not (trace.source_length or trace.delays):
        raise UserError(f"sentence {number + 1} is empty; the format rw cannot represent it")
    if trace.source_length > _LONGEST_PATH:
        raise UserError(
            f"sentence {number + 1} has {trace.source_length:,} source units; the format rw allows {_LONGEST_PATH:,}"
        )
    if trace.unit == "ms":
        raise UserError("a log in milliseconds cannot be written as rw; choose another format")
    return " ".join(trace.actions())


READERS: dict[str, Callable[[], Callable[[bytes, str], Trace]]] = {
    "rw": lambda: _parse_rw,
    "trace": lambda: _parse_trace,
    "simuleval": lambda: simuleval_log.Reader().parse,
}
WRITERS: dict[str, Callable[[int, Trace], str]] = {
    "rw": _rw_line,
    "trace": lambda number, trace: trace.to_json(),
    "simuleval": simuleval_log.line,
}
