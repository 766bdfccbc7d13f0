"""The commands and code of the README, docs/live.md and docs/measure.md are executed."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [README, *((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("live.md", "measure.md"))]


def blocks(kind: str, text: str = README) -> list[str]:
    """The fenced blocks of one kind. All fences are paired in order, so that no closing fence opens a block."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.M | re.S)
    return [block for found, block in fenced if found == kind]


CONSOLE = list(dict.fromkeys(block for page in PAGES for block in blocks("console", page)))


@pytest.mark.parametrize("block", CONSOLE, ids=lambda block: block.splitlines()[0])
def test_console_blocks(block: str) -> None:
    """A line that begins with a dollar sign is typed; what follows is what it prints."""
    command, _, expected = block.partition("\n")
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", command.removeprefix("$ ")], capture_output=True, text=True, env=environment, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.rstrip() == expected.rstrip()


def test_python_block() -> None:
    (code,) = blocks("python")
    expected = README[README.index(code) :].split("```")[2].strip()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue().strip() == expected


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        if not target.startswith("http"):
            assert (ROOT / target).exists(), target


def test_every_verb_that_is_mentioned_exists() -> None:
    from stacl.support import plugins

    mentioned = set(re.findall(r"(?:`|^|\| |\$ )stacl ([a-z]+)", README, flags=re.M))
    assert mentioned <= set(plugins.names("commands"))
    assert {"train", "translate", "evaluate", "score", "show"} <= mentioned


def test_the_demo(tmp_path: Path) -> None:
    """`make demo`: the shipped model hears a word, and each listener is told what its latency allows."""
    command = [sys.executable, str(ROOT / "examples" / "demo.py"), "--pace", "0"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    heard = lines[lines.index(["German", "k", "=", "1", "k", "=", "3", "k", "=", "7"]) + 1 :]
    assert heard[:3] == [["Eine", "A"], ["Frau", "woman"], ["in", "in", "A"]]
    assert "What to try next" in done.stdout
    assert pages_show(done.stdout)


def pages_show(printed: str) -> bool:
    """What the README and docs/live.md show of the demo is a part of what it prints."""
    shown = [block.strip("\n") for page in PAGES for block in blocks("", page) if "k = 7" in block]
    return len(shown) > 1 and all(block in printed for block in shown)
