"""Progress of long work on stderr: a tqdm bar on a terminal, a plain line every 30 seconds elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Never, TextIO

if TYPE_CHECKING:
    from tqdm import tqdm


def duration(seconds: float) -> str:
    """Format seconds for people.

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
    """Shows how many items are done and how long the rest will take."""

    def __init__(self, what: str, total: int | None = None, done: int = 0, quiet: float = 30.0) -> None:
        """`what` names the items in the plural; `quiet` is the number of seconds between two plain lines."""
        self._what, self._total, self._quiet = what, total, quiet
        self._first = done
        self._begin = self._last = time.monotonic()
        self._out: TextIO = sys.stderr
        self._bar = _bar(what, total, done, self._out) if self._out.isatty() else None

    def update(self, done: int, note: str = "") -> None:
        """Set the number of items that are done, and a note to show beside it."""
        if self._bar is not None:
            if note:
                self._bar.set_postfix_str(note, refresh=False)
            self._bar.update(done - self._bar.n)
            return
        now = time.monotonic()
        if now - self._last >= self._quiet:
            self._last = now
            self.say(self._line(done, note, now))

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        if self._bar is not None:
            self._bar.clear()
        print(text, file=self._out, flush=True)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()

    def _line(self, done: int, note: str, now: float) -> str:
        parts = [f"{self._what} {done:,}" + (f" of {self._total:,}" if self._total else "")]
        rate = (done - self._first) / max(1e-9, now - self._begin)
        if self._total and rate > 0:
            parts.append(f"{duration((self._total - done) / rate)} left")
        return ", ".join(parts + ([note] if note else []))


def _bar(what: str, total: int | None, done: int, out: TextIO) -> tqdm[Never]:
    from tqdm import tqdm  # only on a terminal

    return tqdm(
        desc=what, total=total, initial=done, unit="", file=out, leave=False, mininterval=0.2, dynamic_ncols=True
    )
