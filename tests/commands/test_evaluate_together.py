"""Several evaluations at once that share one --out folder."""

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


def test_concurrent_processes_lose_no_scores(text: Path, tmp_path: Path) -> None:
    """Each process is slow between reading and writing the scores, as on a slow disk."""
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


def test_a_second_writer_of_a_trace_file_is_refused(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", "photos-de-en", "--source", str(text), "--reference", str(text)]
    command += ["--policy", "wait-k:1", "--out", str(tmp_path / "out")]
    with sole_writer(tmp_path / "out" / "wait-k-1.jsonl", "writing to"):
        assert main(command) == 2
    assert "another process is writing to" in capsys.readouterr().err
    assert not list((tmp_path / "out").iterdir())


def test_a_waiter_takes_the_new_lock_after_the_old_one_is_removed(tmp_path: Path) -> None:
    """Otherwise it and the next process would each hold a different lock file."""
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
