"""Locks: one process at a time, released however the process ends."""

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


def test_a_killed_process_holds_nothing(tmp_path):
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


def test_a_lock_is_free_again_and_leaves_nothing(tmp_path):
    file = tmp_path / "new" / "scores.json"
    refused = pytest.raises(UserError, match="another process is writing to")
    for _ in range(2):
        with sole_writer(file, "writing to"), refused, sole_writer(file, "writing to"):
            pass
    assert list((tmp_path / "new").iterdir()) == []


def test_where_nothing_can_be_written_nobody_is_kept_out():
    with sole_use(Path("/proc/nowhere"), "training"), sole_writer(Path("/proc/nowhere/file"), "writing to"):
        pass
