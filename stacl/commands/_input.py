"""Opens input, reads it as soon as it arrives, and stops at signals."""

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
    """Handles Ctrl-C and termination signals.

    While the program waits for input, a signal stops it at once. Otherwise it stops between two words, so that each
    step is complete. A second signal stops it immediately.
    """

    def __init__(self) -> None:
        self.number = 0  # of the signal that arrived; 0 if none has
        self.repeated = False
        self._waiting = False

    def __enter__(self) -> StopSignal:
        # A signal that is ignored, as under nohup, stays ignored. SIGINT is always handled.
        handled = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._handle) for number in {signal.SIGINT, *handled}}
        return self

    def __exit__(self, *error: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """While inside, a signal raises KeyboardInterrupt. So does one that arrived before."""
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
    """Yield input as soon as it arrives. A read does not wait until a buffer is full."""
    while chunk := wait_for(source.fileno(), 65536, stop):
        yield chunk


def wait_for(handle: int, most: int, stop: StopSignal) -> bytes:
    """Wait for input and return at most `most` bytes, or none at the end."""
    with stop.waiting():
        while True:
            try:
                return os.read(handle, most)
            except BlockingIOError:  # another process made the pipe or terminal non-blocking
                select.select([handle], [], [])
            except OSError as error:
                raise UserError(f"the input cannot be read: {error.strerror}") from None
