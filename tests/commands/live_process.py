"""Runs `stacl translate` as a process, through pipes or on a terminal."""

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
TIMEOUT = 60.0  # seconds; the machine may be busy


def command(run: Path | str, *options: object) -> list[str]:
    return [sys.executable, "-m", "stacl", "translate", str(run), *map(str, options)]


def environment(**more: str) -> dict[str, str]:
    # Without PYTHONUNBUFFERED, which would hide a missing flush.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return kept | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | more


class Process:
    """A running `stacl translate`, with its output so far."""

    def __init__(self, process: subprocess.Popen[bytes], output: int, input: int) -> None:
        self.process, self._output, self._input = process, output, input
        self.output = b""

    def send(self, text: str) -> None:
        os.write(self._input, text.encode(errors="surrogateescape"))

    def read_until(self, wanted: str) -> str:
        self._read_until(lambda text: re.search(wanted, text) is not None, wanted)
        return self.text()

    def wait_for_lines(self, source: str, translation: str) -> None:
        """Wait until the terminal shows these two lines. A read may end in the middle of a redraw."""
        self._read_until(lambda text: frames(text)[-1:] == [(source, translation)], (source, translation))

    def _read_until(self, done: Callable[[str], bool], wanted: object) -> None:
        deadline = time.monotonic() + TIMEOUT
        while not done(self.text()):
            ready, _, _ = select.select([self._output], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"waited for {wanted!r}, got only {self.text()!r}"
            more = os.read(self._output, 65536)
            assert more, f"it ended without {wanted!r}: {self.text()!r}"
            self.output += more

    def text(self) -> str:
        return self.output.decode(errors="replace")

    def rest(self) -> str:
        with contextlib.suppress(OSError):  # a closed terminal raises
            while more := os.read(self._output, 65536):
                self.output += more
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


def session_output(run: Path, words: list[str], spec: str) -> tuple[list[str], list[str]]:
    """Return the target words before the end of the source, and after it."""
    session = api.load(run).stream(spec, decoding=Decoding(beam=5))
    said = [word.text for source in words for word in session.read(source)]
    return said, [word.text for word in session.close()]


@contextlib.contextmanager
def terminal(run: Path, *options: object) -> Iterator[tuple[Process, int]]:
    """Run the command on a pseudo-terminal of 100 columns. Yield the process and the terminal."""
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
