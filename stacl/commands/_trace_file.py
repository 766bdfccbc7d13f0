"""The file of `stacl translate --trace`: one JSON line per sentence, written at once."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

from stacl.support.errors import UserError
from stacl.traces.simulated_speaker import since_first_sound
from stacl.traces.trace import Trace


class TraceFile:
    """Writes traces, one line each.

    Words from a file have no meaningful arrival times, so their times are left out. With a pace, a simulated speaker
    begins the first word before it arrives, and times count from there.
    """

    def __init__(self, path: Path, stack: contextlib.ExitStack, pace: float | None, source: IO[bytes]) -> None:
        source_file = os.fstat(source.fileno())
        self._path, self._pace, self._from_file = path, pace, stat.S_ISREG(source_file.st_mode)
        with self._errors_named():
            if self._from_file and path.exists() and os.path.samestat(source_file, path.stat()):
                raise UserError(f"--trace {path} is the text to translate, which it would overwrite; name another file")
            # Unbuffered: a kill loses no sentence, and a full disk is reported.
            self._file = stack.enter_context(path.open("wb", buffering=0))

    def keep(self, trace: Trace) -> None:
        if self._pace:
            trace = since_first_sound(trace, self._pace)
        elif self._from_file:
            trace = replace(trace, read_times=(), write_times=())
        with self._errors_named():
            self._file.write(f"{trace.to_json()}\n".encode())

    @contextlib.contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(f"--trace {self._path} cannot be written: {error.strerror}") from None
