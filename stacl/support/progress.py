"""Progress of long work: a line that renews itself on a terminal, plain lines now and then elsewhere. On stderr."""

from __future__ import annotations

import sys
import time
from typing import TextIO


def duration(seconds: float) -> str:
    """
    >>> duration(42), duration(150), duration(7260)
    ('42 s', '2 min 30 s', '2 h 01 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Progress:
    """How far, how fast, how long still.

    On a terminal one line is rewritten a few times a second; elsewhere a line is printed every `quiet` seconds.
    """

    def __init__(self, what: str, total: int | None = None, done: int = 0, quiet: float = 30.0) -> None:
        self.what, self.total = what, total
        self._first = self._done = done
        self._begin = self._last = time.monotonic()
        self._out: TextIO = sys.stderr
        self._live = self._out.isatty()
        self._every = 0.2 if self._live else quiet
        self._width = 0

    def update(self, done: int, note: str = "") -> None:
        self._done = done
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            self._show(self.line(now, note))

    def line(self, now: float, note: str = "") -> str:
        parts = [f"{self.what} {self._done:,}" + (f" of {self.total:,}" if self.total else "")]
        rate = (self._done - self._first) / max(1e-9, now - self._begin)
        if self.total and rate > 0:
            parts.append(f"{duration((self.total - self._done) / rate)} to go")
        return ", ".join(parts + ([note] if note else []))

    def say(self, text: str) -> None:
        """A line that stays."""
        self._clear()
        print(text, file=self._out, flush=True)

    def close(self) -> None:
        self._clear()

    def _show(self, text: str) -> None:
        if self._live:
            self._out.write("\r" + text.ljust(self._width))
            self._width = len(text)
            self._out.flush()
        else:
            print(text, file=self._out, flush=True)

    def _clear(self) -> None:
        if self._live and self._width:
            self._out.write("\r" + " " * self._width + "\r")
            self._width = 0
