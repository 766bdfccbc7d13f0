"""Streaming of line-aligned text files, one line of each at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import zip_longest
from pathlib import Path
from typing import BinaryIO

from stacl.support.errors import UserError
from stacl.support.files import checksum


def rows(paths: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    """Rows of one line per file, without line ends. A missing file is an error at once, not at the first row."""
    for path in paths:
        if not path.is_file():
            raise UserError(f"{path}: no such file; expected one line-aligned text file per language")
    return _rows(paths)


def _rows(paths: Sequence[Path]) -> Iterator[tuple[str, ...]]:
    number = 0
    with ExitStack() as stack:
        files = [stack.enter_context(_open(path)) for path in paths]
        for number, lines in enumerate(zip_longest(*files), start=1):
            if None in lines:
                raise UserError(_misaligned(paths, files, lines, number))
            yield tuple(_text(line, path, number) for line, path in zip(lines, paths, strict=True))
    if number == 0:
        raise UserError(f"{paths[0]}: the file is empty; a corpus needs at least one line")


def _open(path: Path) -> BinaryIO:
    try:
        # Binary: only a line feed ends a line, and a decoding error has a line number.
        return path.open("rb")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error


def _text(line: bytes, path: Path, number: int) -> str:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}, line {number}: expected UTF-8, found byte 0x{line[error.start]:02x} at column"
            f" {error.start + 1}; convert the file to UTF-8"
        ) from None
    if number == 1:
        text = text.removeprefix("\ufeff")
    return text.rstrip("\r\n")


def _misaligned(paths: Sequence[Path], files: Sequence[BinaryIO], lines: Sequence[bytes | None], number: int) -> str:
    counts = [
        number - 1 if line is None else number + sum(1 for _ in file) for line, file in zip(lines, files, strict=True)
    ]
    found = ", ".join(f"{path} has {count} lines" for path, count in zip(paths, counts, strict=True))
    return f"{found}: the files must have the same number of lines; line {number} has no partner"


def sha256(path: Path) -> str:
    try:
        return checksum(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from error
