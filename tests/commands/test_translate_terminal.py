"""`stacl translate` on a terminal: two lines that follow the keys."""

from __future__ import annotations

import signal
import termios
import time

import pytest

from tests.commands.live_process import LINES, PATIENCE, said_by_a_session, terminal
from tests.helpers import frames

pytestmark = pytest.mark.slow


def test_on_a_terminal_two_lines_follow_the_keys(copy_run):
    first, second, third = LINES[1].split()[:3]
    with terminal(copy_run, "--policy", "wait-k:1") as (live, theirs):
        before = termios.tcgetattr(theirs)
        live.tell(first[:2])  # while the model is still being loaded
        live.hear_until("Ctrl-D ends")
        live.see(first[:2], "")
        # Slips, Ctrl-W, a bell, an arrow key, a broken byte: all mended.
        live.tell(f"{first[2:]}wrong\x17\x07{first}x\x7f\x1b[D\udcff\x7f ")
        live.see(first, first)
        live.tell("\x1b")  # a key that comes in two parts, as over a slow line
        time.sleep(0.3)
        live.tell(f"[D{second} ")
        live.see(f"{first} {second}", f"{first} {second}")
        live.tell("\n" + third + " ")
        live.see(third, third)
        live.tell("\x04")
        assert live.process.wait(PATIENCE) == 0
        assert termios.tcgetattr(theirs) == before


def test_on_a_terminal_the_lag_is_shown_and_an_interrupt_restores_it(babbler):
    words = LINES[1].split()[:5]
    said, due = said_by_a_session(babbler, words, "wait-k:3")
    with terminal(babbler, "--policy", "wait-k:3") as (live, theirs):
        before = termios.tcgetattr(theirs)
        live.hear_until("Ctrl-D ends")
        live.tell(" ".join(words) + " ")
        live.see(" ".join(words), " ".join(said) + "  2 words behind")
        live.process.send_signal(signal.SIGINT)
        live.hear_until("\r\n\r\n")
        assert live.process.wait(PATIENCE) == 130
        assert termios.tcgetattr(theirs) == before
        source, translation = frames(live.text())[-1]
        assert source == " ".join(words)
        assert " ".join(said + due).endswith(translation.removeprefix("…"))
        assert due[-1] in translation
        assert "Traceback" not in live.text()
