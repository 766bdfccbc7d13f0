"""Logs of read and write decisions, ours and other people's, one sentence a line.

    rw         0 or R for READ, 1 or W for WRITE, with or without spaces between them
    trace      our own JSON lines, everything that a Trace holds
    simuleval  SimulEval's instances.log, with the reference that it carries

Readers yield one sentence after the other and keep nothing; what is wrong with a line is said with file and
line.
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
_LONGEST_PATH = 10**7  # an R for each unit: more is a mistake, and would not fit into memory
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
            unit, lines = simuleval_log.unit_of(lines, name)
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
                text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
                found.append(validation.decoded(text).rstrip("\r\n"))
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
    return Trace.from_json(validation.decoded(line))


def _rw_line(number: int, trace: Trace) -> str:
    if not (trace.source_length or trace.delays):
        raise UserError(f"sentence {number + 1} is empty: a log of R and W has no line for it")
    if trace.source_length > _LONGEST_PATH:
        raise UserError(f"sentence {number + 1} has {trace.source_length:,} source units, too many to write one by one")
    if trace.unit == "ms":
        raise UserError("a log in milliseconds has no units to read one by one: R and W cannot say it")
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
