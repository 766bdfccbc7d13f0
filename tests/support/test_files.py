"""Locks: one process at a time, and released when the process ends for any reason."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stacl.support.errors import UserError
from stacl.support.files import sole_use, sole_writer

HOLDER = """
import sys, time
from pathlib import Path
from stacl.support.files import sole_use
with sole_use(Path(sys.argv[1]), "training"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_killed_process_releases_its_lock(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path / "run")], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UserError, match="another process is training in"), sole_use(tmp_path / "run", "training"):
            pass
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with sole_use(tmp_path / "run", "training"):
        pass
    assert list((tmp_path / "run").iterdir()) == []


def test_a_released_lock_leaves_no_file(tmp_path: Path) -> None:
    file = tmp_path / "new" / "scores.json"
    refused = pytest.raises(UserError, match="another process is writing to")
    for _ in range(2):
        with sole_writer(file, "writing to"), refused, sole_writer(file, "writing to"):
            pass
    assert list((tmp_path / "new").iterdir()) == []


def test_a_read_only_folder_is_not_locked() -> None:
    with sole_use(Path("/proc/nowhere"), "training"), sole_writer(Path("/proc/nowhere/file"), "writing to"):
        pass
