"""`stacl translate` on a terminal: typed text and its translation in two lines."""

from __future__ import annotations

import signal
import termios
import time
from pathlib import Path

import pytest

from tests.commands.live_process import LINES, TIMEOUT, session_output, terminal
from tests.helpers import frames

pytestmark = pytest.mark.slow


def test_two_lines_follow_the_keys(copy_run: Path) -> None:
    first, second, third = LINES[1].split()[:3]
    with terminal(copy_run, "--policy", "wait-k:1") as (live, theirs):
        before = termios.tcgetattr(theirs)
        live.send(first[:2])  # while the model is still being loaded
        live.read_until("Ctrl-D ends")
        live.wait_for_lines(first[:2], "")
        # Typing errors, Ctrl-W, a bell, an arrow key, a broken byte: all corrected.
        live.send(f"{first[2:]}wrong\x17\x07{first}x\x7f\x1b[D\udcff\x7f ")
        live.wait_for_lines(first, first)
        live.send("\x1b")  # an escape sequence in two parts, as over a slow connection
        time.sleep(0.3)
        live.send(f"[D{second} ")
        live.wait_for_lines(f"{first} {second}", f"{first} {second}")
        live.send("\n" + third + " ")
        live.wait_for_lines(third, third)
        live.send("\x04")
        assert live.process.wait(TIMEOUT) == 0
        assert termios.tcgetattr(theirs) == before


def test_the_lag_is_shown_and_an_interrupt_restores_the_terminal(babbler: Path) -> None:
    words = LINES[1].split()[:5]
    said, due = session_output(babbler, words, "wait-k:3")
    with terminal(babbler, "--policy", "wait-k:3") as (live, theirs):
        before = termios.tcgetattr(theirs)
        live.read_until("Ctrl-D ends")
        live.send(" ".join(words) + " ")
        live.wait_for_lines(" ".join(words), " ".join(said) + "  2 words behind")
        live.process.send_signal(signal.SIGINT)
        live.read_until("\r\n\r\n")
        assert live.process.wait(TIMEOUT) == 130
        assert termios.tcgetattr(theirs) == before
        source, translation = frames(live.text())[-1]
        assert source == " ".join(words)
        assert " ".join(said + due).endswith(translation.removeprefix("…"))
        assert due[-1] in translation
        assert "Traceback" not in live.text()
