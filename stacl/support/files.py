"""Files that are there whole or not at all, their checksums, and files and folders that one process has for itself."""

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
    """`write` fills a file or folder beside the path; only when it is whole and on the disk it takes the name.

    A kill leaves the old one or the new one, never half of one. What an earlier kill left behind is removed. (No system
    call puts a folder in the place of another: a kill just then leaves the old one beside its name, as `.old-...`.)
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
            raise UserError(f"the disk is full: {path} could not be saved; what was saved before is intact") from None
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
    """A file or a folder with all that is in it; nothing if there is none."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def sole_use(folder: Path, purpose: str) -> Iterator[None]:
    """Inside, no other process gets this folder. The system lets go of it when this one ends, however it ends."""

    def opened() -> int:
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder, os.O_RDONLY)

    refusal = f"another process is {purpose} in {folder}; let it end first, or take another folder"
    with _locked(folder, opened, refusal):
        yield


@contextlib.contextmanager
def sole_writer(file: Path, doing: str = "") -> Iterator[None]:
    """Inside, no other process writes this file: one that comes meanwhile waits or, where it says what it is `doing`,
    is refused. The lock lies beside it, for the file itself may be replaced.
    """
    lock = file.with_name(f".lock-{file.name}")

    def opened() -> int:
        lock.parent.mkdir(parents=True, exist_ok=True)
        return os.open(lock, os.O_RDWR | os.O_CREAT)

    with _locked(lock, opened, doing and f"another process is {doing} {file}; let it end first, or write elsewhere"):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):  # it was never made where nothing can be written, which others say
                lock.unlink()


@contextlib.contextmanager
def _locked(path: Path, opened: Callable[[], int], refusal: str) -> Iterator[None]:
    """With the lock of what `opened` makes and opens at this path. Where there is no refusal, it is waited for."""
    handle = -1
    try:
        import fcntl

        while True:
            handle = opened()
            fcntl.flock(handle, fcntl.LOCK_EX | (fcntl.LOCK_NB if refusal else 0))
            if _is_at(path, handle):
                break
            os.close(handle)  # who had it before has removed it: who comes now makes a new one
            handle = -1
    except BlockingIOError:
        os.close(handle)
        raise UserError(refusal) from None
    except (ImportError, OSError):  # Windows and some network disks have no such locks: then nobody is kept out
        pass
    try:
        yield
    finally:
        if handle >= 0:
            os.close(handle)


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
