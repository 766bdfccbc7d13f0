"""A running `stacl translate` to talk with, through pipes or on a terminal."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from stacl import api
from stacl.corpora.base import corpus
from stacl.decoding.options import Decoding
from tests.conftest import ROOT
from tests.helpers import frames

LINES = [source for source, _ in corpus("copy").open("test")]
PATIENCE = 60.0  # seconds until a test gives up on a process; the machine may be busy


def command(run: Path, *options: object) -> list[str]:
    return [sys.executable, "-m", "stacl", "translate", str(run), *map(str, options)]


def environment(**more: str) -> dict[str, str]:
    # Without PYTHONUNBUFFERED, which would hide that a word was not flushed.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return kept | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | more


class Process:
    """A running `stacl translate`; `hear` is what it has to say so far, up to a wanted end."""

    def __init__(self, process: subprocess.Popen[bytes], ear: int, mouth: int) -> None:
        self.process, self._ear, self._mouth = process, ear, mouth
        self.heard = b""

    def tell(self, text: str) -> None:
        os.write(self._mouth, text.encode(errors="surrogateescape"))

    def hear_until(self, wanted: str) -> str:
        self._listen(lambda text: re.search(wanted, text) is not None, wanted)
        return self.text()

    def see(self, source: str, translation: str) -> None:
        """On a terminal: waits for these two lines. One reading may end amid a drawing, so there is no earlier sign."""
        self._listen(lambda text: frames(text)[-1:] == [(source, translation)], (source, translation))

    def _listen(self, enough: Callable[[str], bool], wanted: object) -> None:
        deadline = time.monotonic() + PATIENCE
        while not enough(self.text()):
            ready, _, _ = select.select([self._ear], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"waited for {wanted!r}, heard only {self.text()!r}"
            more = os.read(self._ear, 65536)
            assert more, f"it ended without {wanted!r}: {self.text()!r}"
            self.heard += more

    def text(self) -> str:
        return self.heard.decode(errors="replace")

    def rest(self) -> str:
        with contextlib.suppress(OSError):  # how a terminal ends
            while more := os.read(self._ear, 65536):
                self.heard += more
        return self.text()


@contextlib.contextmanager
def piped(run: Path, *options: object) -> Iterator[Process]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command(run, *options), stdin=pipe, stdout=pipe, stderr=pipe, env=environment(), bufsize=0
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield Process(process, process.stdout.fileno(), process.stdin.fileno())
        finally:
            process.kill()


def errors_of(live: Process) -> str:
    assert live.process.stderr is not None
    return live.process.stderr.read().decode()


def said_by_a_session(run: Path, words: list[str], spec: str) -> tuple[list[str], list[str]]:
    """Before the end of the source, and after it."""
    session = api.load(run).stream(spec, decoding=Decoding(beam=5))
    said = [word.text for source in words for word in session.read(source)]
    return said, [word.text for word in session.close()]


@contextlib.contextmanager
def terminal(run: Path, *options: object) -> Iterator[tuple[Process, int]]:
    """The command on a pseudo-terminal of 100 columns, and the terminal's own end of it."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 100))
    with subprocess.Popen(
        command(run, *options), stdin=theirs, stdout=theirs, stderr=theirs, env=environment(), start_new_session=True
    ) as process:
        try:
            yield Process(process, ours, ours), theirs
        finally:
            process.kill()
            os.close(theirs)
    os.close(ours)
