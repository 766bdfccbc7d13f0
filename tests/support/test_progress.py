"""Progress: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from stacl.support.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_at_intervals_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    often, seldom = Progress("pairs", 1000, quiet=0.0), Progress("lines", quiet=1000.0)
    for done in (250, 500):
        often.update(done, "epoch 1")
        seldom.update(done)
    often.say("validated")
    often.close()
    first, second, last = out.getvalue().splitlines()
    assert first.startswith("pairs 250 of 1,000, ")
    assert second.startswith("pairs 500 of 1,000, ")
    assert second.endswith("left, epoch 1")
    assert last == "validated"


def test_on_a_terminal_the_bar_is_removed_and_lines_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    bar = Progress("step", 10, done=2)
    bar.update(5, "loss 3.2")
    bar.say("validated")
    bar.close()
    assert "2/10" in out.getvalue()
    assert "validated\n" in out.getvalue()
    assert out.getvalue().endswith("\r")


def test_tqdm_is_not_imported_without_a_terminal() -> None:
    code = "import sys; from stacl.support.progress import Progress; Progress('x'); assert 'tqdm' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=True)
