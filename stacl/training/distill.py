"""Sequence-level distillation: translate one side of a corpus into two aligned files, resumable after a kill.

The files grow under a temporary name, a block of lines at a time, and get their names when they are complete. A JSON
file beside them records what they were made with; an interrupted distillation is continued only with the same facts.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from stacl.corpora.base import Corpus, corpus
from stacl.decoding.options import Decoding
from stacl.live.translator import Translator
from stacl.policies.base import Policy
from stacl.support.errors import UserError
from stacl.support.files import sole_writer, write_text_atomically
from stacl.support.progress import Progress

BLOCK = 1024  # lines translated between two writes; within a block, lines of similar length are batched together


def source_corpus(spec: str, source: str, target: str, root: str | None) -> Corpus:
    """The corpus of this language pair, or of `source` and any other language: only the source side is read."""
    try:
        return corpus(spec, source, target, root)
    except UserError:
        with contextlib.suppress(UserError):
            return corpus(spec, source, None, root)
        raise


def output_files(prefix: Path, source: str, target: str) -> tuple[Path, Path]:
    """PREFIX.source and PREFIX.target, named by language unless both are the same (a toy task)."""
    sides = (source, target) if source != target else ("source", "target")
    return prefix.with_name(f"{prefix.name}.{sides[0]}"), prefix.with_name(f"{prefix.name}.{sides[1]}")


class Distillation:
    """One pair of files in the making."""

    def __init__(self, prefix: Path, files: tuple[Path, Path], facts: dict[str, object]) -> None:
        self.prefix, self.files, self.facts = prefix, files, facts
        self.partial = tuple(file.with_name(f".partial-{file.name}") for file in files)
        finished = [file for file in files if file.exists()]
        if finished and not self._begun():
            raise UserError(f"{finished[0]} already exists; remove it, or choose another --out")

    def run(self, translator: Translator, lines: Iterator[str], chosen: Policy, decoding: Decoding, size: int) -> None:
        """Translate the lines that are missing, then rename the files."""
        with sole_writer(self.prefix, "distilling into"):
            try:
                self._claim()
                done = self._translate(translator, lines, chosen, decoding, size)
                if not done:
                    raise UserError(f"corpus {self.facts['corpus']} has no lines")
                for partial, file in zip(self.partial, self.files, strict=True):
                    partial.replace(file)
            except OSError as error:
                name = error.filename or self.prefix
                raise UserError(f"{name} cannot be written: {error.strerror or error}") from None

    def _translate(
        self, translator: Translator, lines: Iterator[str], chosen: Policy, decoding: Decoding, size: int
    ) -> int:
        """Append to the partial files; returns the number of lines that they have in the end."""
        done = _keep_whole_lines(self.partial)
        _skip(lines, self.partial[0], done)
        bar = Progress("lines", done=done)
        with self.partial[0].open("ab") as sources, self.partial[1].open("ab") as targets:
            for block in iter(lambda: list(itertools.islice(lines, BLOCK)), []):
                traces = translator.translate_lines(block, chosen, decoding=decoding, size=size)
                _append(sources, block)
                _append(targets, [translator.target_language.join(trace.target) for trace in traces])
                done += len(block)
                bar.update(done)
        bar.close()
        return done

    def _begun(self) -> bool:
        return any(file.exists() for file in self.partial)

    def _claim(self) -> None:
        """Record the facts, or check that the partial files were made with the same ones."""
        path = self.prefix.with_name(f"{self.prefix.name}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        before = _read_facts(path)
        if path.exists() and not before:
            raise UserError(f"{path} already exists and does not describe a distillation; choose another --out")
        if self._begun():
            if before:
                self._check_same(before)
            for partial, file in zip(self.partial, self.files, strict=True):
                if file.exists():  # killed between the two renames at the end
                    file.replace(partial)
        write_text_atomically(path, json.dumps(self.facts) + "\n")

    def _check_same(self, before: dict[str, object]) -> None:
        for name, now in self.facts.items():
            if before.get(name) != now:
                one, other = self.partial
                raise UserError(
                    f"{one.parent} holds an unfinished distillation with {name} {before.get(name)}, not {now};"
                    f" finish it with the same settings, or remove {one.name} and {other.name}"
                )


def _read_facts(path: Path) -> dict[str, object]:
    """The facts of an earlier distillation; empty if there is no such file, or it is a different kind of file."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and "policy" in found else {}


def _keep_whole_lines(partial: tuple[Path, ...]) -> int:
    """Cut both files to the complete lines that both have; returns their number."""
    counts = [_whole_lines(file) for file in partial]
    for file in partial:
        if file.exists():
            _whole_lines(file, cut_after=min(counts))
    return min(counts)


def _whole_lines(file: Path, cut_after: int | None = None) -> int:
    if not file.exists():
        return 0
    count = size = 0
    with file.open("rb") as lines:
        for line in lines:
            if not line.endswith(b"\n") or count == cut_after:
                break
            count, size = count + 1, size + len(line)
    if cut_after is not None:
        os.truncate(file, size)
    return count


def _skip(lines: Iterator[str], sources: Path, done: int) -> None:
    """Skip the lines that are already translated, and check that the corpus still has the same ones."""
    if not done:
        return
    with sources.open("rb") as file:
        for number, before in enumerate(itertools.islice(file, done), start=1):
            line = next(lines, None)
            if line is None or _encoded(line) != before:
                now = "the corpus ends before it" if line is None else "the corpus has a different line there"
                raise UserError(f"{sources}:{number} is already translated, but {now}; remove the file to start again")


def _append(file: BinaryIO, lines: list[str]) -> None:
    file.writelines(map(_encoded, lines))
    file.flush()


def _encoded(line: str) -> bytes:
    return f"{' '.join(line.splitlines())}\n".encode()
