"""Input that arrives: opened, read as soon as something is there, and stopped by signals."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import IO

from stacl.support.errors import UserError

_SIGNALS = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


class StopSignal:
    """Ctrl-C or a termination signal stops at once while waiting, else between two words, so that no step is half-done.

    A second signal stops the program wherever it is.
    """

    def __init__(self) -> None:
        self.number = 0  # of the signal that arrived
        self.repeated = False
        self._waiting = False

    def __enter__(self) -> StopSignal:
        # A signal that is ignored, as under nohup, stays ignored.
        handled = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._handle) for number in {signal.SIGINT, *handled}}
        return self

    def __exit__(self, *error: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside, a signal raises KeyboardInterrupt, also one that arrived just before."""
        self._waiting = True
        try:
            self.check()
            yield
        finally:
            self._waiting = False

    def check(self) -> None:
        if self.number:
            raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.repeated, self.number = self.number > 0, number
        if self._waiting or self.repeated:
            raise KeyboardInterrupt


def open_input(name: str, stack: contextlib.ExitStack) -> IO[bytes]:
    if name == "-":
        if sys.stdin is None:
            raise UserError("standard input is closed; give a file to translate")
        return sys.stdin.buffer
    try:
        return stack.enter_context(Path(name).open("rb"))
    except OSError as error:
        raise UserError(f"{name} cannot be read: {error.strerror}") from None


def chunks(source: IO[bytes], stop: StopSignal) -> Iterator[bytes]:
    """Everything that arrives, at once: a read does not wait until a buffer is full."""
    while chunk := wait_for(source.fileno(), 65536, stop):
        yield chunk


def wait_for(handle: int, most: int, stop: StopSignal) -> bytes:
    """At most so many bytes, once something has arrived; empty at the end."""
    with stop.waiting():
        while True:
            try:
                return os.read(handle, most)
            except BlockingIOError:  # another process made the pipe or terminal non-blocking
                select.select([handle], [], [])
            except OSError as error:
                raise UserError(f"the text cannot be read: {error.strerror}") from None
