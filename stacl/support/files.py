"""Atomic writes, checksums, and locks on files and folders."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from stacl.support.errors import UserError


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill a file or folder beside the path, flush it to disk, and rename it to the path.

    If the process is killed, the old version or the new one remains, never a part. Leftovers of an earlier kill are
    removed. No system call replaces one folder by another: a kill at that moment leaves the old folder as `.old-...`.
    """
    partial = path.with_name(f".partial-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove(partial)
        write(partial)
        for file in sorted(partial.rglob("*")) if partial.is_dir() else ():
            _sync(file)
        _sync(partial)
        old = path.with_name(f".old-{path.name}")
        if path.is_dir():
            remove(old)
            path.rename(old)
        partial.replace(path)
        remove(old)
        _sync(path.parent)
    except OSError as error:
        with contextlib.suppress(OSError):
            remove(partial)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise UserError(f"the disk is full: {path} could not be saved; earlier files are intact") from None
        raise UserError(f"{path} could not be saved: {error.strerror or error}") from None


def write_text_atomically(path: Path, text: str) -> None:
    def write(partial: Path) -> None:
        partial.write_text(text, encoding="utf-8")

    write_atomically(path, write)


def checksum(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove(path: Path) -> None:
    """Delete a file, or a folder with its contents, if it exists."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def sole_use(folder: Path, purpose: str) -> Iterator[None]:
    """Lock a folder for this process, or raise a UserError if another process holds the lock. A kill releases it."""
    with _locked(folder / ".lock", f"another process is {purpose} in {folder}; wait for it, or choose another folder"):
        yield


@contextlib.contextmanager
def sole_writer(file: Path, doing: str = "") -> Iterator[None]:
    """Lock a file for writing. If another process holds it, wait or, if `doing` is given, raise a UserError.

    The lock is a file beside it, because the file itself may be replaced.
    """
    refusal = doing and f"another process is {doing} {file}; wait for it, or write elsewhere"
    with _locked(file.with_name(f".lock-{file.name}"), refusal):
        yield


@contextlib.contextmanager
def _locked(path: Path, refusal: str) -> Iterator[None]:
    """Hold the lock file at this path, and remove it at the end.

    `refusal` is the error message if another process holds it. If it is empty, wait for the lock.
    """
    import filelock

    # No soft lock (the existence of the file): a killed process would leave the file behind.
    lock = filelock.FileLock(path, blocking=not refusal, fallback_to_soft=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except filelock.Timeout:
        raise UserError(refusal) from None
    except OSError:  # some network disks have no locks; the writer reports a read-only folder
        pass
    try:
        yield
    finally:
        if lock.is_locked:
            with contextlib.suppress(OSError):  # Windows removes it on release
                path.unlink()
            lock.release()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
