"""Several evaluations at once, with one folder for what they find."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from stacl.__main__ import main
from stacl.support.files import sole_writer
from tests.helpers import GERMAN


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "text"
    file.write_text("".join(f"{line}\n" for line in GERMAN), encoding="utf-8")
    return file


def test_a_sweep_of_processes_loses_no_scores(text, tmp_path):
    """What each adds takes its time between reading and writing, as on a slow disk: none may read meanwhile."""
    slow = (
        "import sys, time; from stacl.support import files; from stacl.__main__ import main; sync = files._sync\n"
        "files._sync = lambda path: (time.sleep(1 * ('scores' in path.name)), sync(path))\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    texts = ("--source", text, "--reference", text, "--out", tmp_path / "out")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", slow, "evaluate", "photos-de-en", *map(str, texts), "--policy", f"wait-k:{k}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for k in (1, 2, 3)
    ]
    assert [process.communicate(timeout=300)[1] for process in running] == [""] * 3
    kept = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert sorted(result["policy"] for result in kept) == ["wait-k:1", "wait-k:2", "wait-k:3"]
    assert not list((tmp_path / "out").glob(".*"))


def test_two_that_would_write_one_trace_file_are_one_too_many(text, tmp_path, capsys):
    command = ["evaluate", "photos-de-en", "--source", str(text), "--reference", str(text)]
    command += ["--policy", "wait-k:1", "--out", str(tmp_path / "out")]
    with sole_writer(tmp_path / "out" / "wait-k-1.jsonl", "writing to"):
        assert main(command) == 2
    assert "another process is writing to" in capsys.readouterr().err
    assert not list((tmp_path / "out").iterdir())


def test_who_waits_for_a_lock_that_was_removed_takes_the_new_one(tmp_path):
    """Else he and who comes after him would both have one, each his own."""
    order: list[str] = []

    def take(name: str) -> None:
        with sole_writer(tmp_path / "scores"):
            order.append(f"{name} in")
            time.sleep(0.1)
            order.append(f"{name} out")

    takers = [threading.Thread(target=take, args=(str(number),)) for number in range(6)]
    for taker in takers:
        taker.start()
        time.sleep(0.03)
    for taker in takers:
        taker.join()
    assert [one.split()[0] for one in order[::2]] == [one.split()[0] for one in order[1::2]]
    assert len(order) == 12
