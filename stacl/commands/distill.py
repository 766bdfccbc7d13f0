"""Translate the source side of a corpus with a trained model, to train another model on.

  stacl distill runs/full multi30k --root FOLDER --out data/distilled
  stacl train configs/multi30k-de-en.toml --set data.corpora=[] \\
      --set 'data.train_files=["data/distilled.de", "data/distilled.en"]' ...

A model's own translations are simpler and more literal than people's, and a wait-k model learns more from them
(sequence-level distillation, Kim and Rush 2016). The files are line by line those of the corpus; PREFIX.json says what
they were made with. A run that was killed goes on where it stopped when the same command is given again.

Read the other way round they are back-translations (Sennrich et al. 2016): people's sentences as the target, a model's
as the source. Only the source side of the corpus is read, so it may be one of another pair of languages:

  stacl distill en-zh mixed-deen:domains=tatoeba --root FOLDER --beam 1 --out FOLDER/backtranslated/everyday
  stacl train configs/finish-zh-en.toml --set 'data.corpora=["files:path=backtranslated/everyday", ...]' ...
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from stacl.support.errors import UserError
from stacl.support.files import sole_writer, write_text_atomically

if TYPE_CHECKING:
    from stacl.corpora.base import Corpus
    from stacl.live.translator import Translator
    from stacl.policies.base import Policy

BLOCK = 1024  # lines translated between two writings: within a block, lines of like length go together


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", metavar="RUN", help="a trained model: a run folder")
    parser.add_argument("corpus", metavar="CORPUS", help="what to translate: NAME or NAME:option=value")
    parser.add_argument("--out", required=True, type=Path, metavar="PREFIX", help="writes PREFIX.de and PREFIX.en")
    parser.add_argument("--split", default="train", help="the part of the corpus (train)")
    parser.add_argument("--root", metavar="FOLDER", help="where corpora lie; else the run's, or STACL_DATA")
    parser.add_argument("--policy", default="full", metavar="P", help="reading policy of the teacher (full)")
    parser.add_argument("--beam", type=int, default=5, metavar="N", help="beam of the teacher (5); 1 is greedy")
    parser.add_argument("--size", type=int, default=64, metavar="N", help="lines decoded together (64)")


def _trained_on(name: str) -> str | None:
    """The root folder of the data that a run was trained on, if its config says so."""
    from stacl.runs import pretrained
    from stacl.runs.folder import RunFolder

    folder = RunFolder(pretrained.find(name))
    return (folder.settings().data.root if folder.config.exists() else "") or None


def run(args: argparse.Namespace) -> int:
    for name in ("beam", "size"):
        if getattr(args, name) < 1:
            raise UserError(f"--{name} must be at least 1, not {getattr(args, name)}")
    if not args.out.name:
        raise UserError(
            f"--out {args.out} is a folder; expected the beginning of two file names, such as data/distilled"
        )
    from stacl import api
    from stacl.policies.base import policy

    # Once, for a file of one's own may be edited meanwhile; and a typo is said before anything is loaded.
    chosen = policy(args.policy)
    translator = api.load(args.run_folder)
    data = translator.manifest
    text = _text(args.corpus, data.source, data.target, args.root or _trained_on(args.run_folder))
    lines = (source for source, _ in text.open(args.split))
    # One language on both sides (a toy task) must not make one file of two.
    sides = (data.source, data.target) if data.source != data.target else ("source", "target")
    files = tuple(args.out.with_name(f"{args.out.name}.{side}") for side in sides)
    there = [file for file in files if file.exists()]
    if there and not any(file.exists() for file in _partial(files)):
        raise UserError(f"{there[0]} is there already; remove it, or choose another --out")
    facts = {
        "model": str(args.run_folder),
        "checksum": translator.fingerprint,
        "corpus": f"{args.corpus}/{args.split}",
        "policy": args.policy,
        "schedule": chosen.decoding_policy().fingerprint(),
        "beam": args.beam,
    }
    with sole_writer(args.out, "distilling into"):
        _distill(translator, lines, chosen, args, facts, files)
    print("\n".join(map(str, files)))
    return 0


def _text(spec: str, source: str, target: str, root: str | None) -> Corpus:
    """The corpus between these languages or, since its other side is not read, between the source and any other."""
    from stacl.corpora.base import corpus

    try:
        return corpus(spec, source, target, root)
    except UserError:
        with contextlib.suppress(UserError):
            return corpus(spec, source, None, root)
        raise


def _distill(
    translator: Translator,
    lines: Iterator[str],
    chosen: Policy,
    args: argparse.Namespace,
    facts: dict[str, object],
    files: tuple[Path, ...],
) -> None:
    from stacl.decoding.options import Decoding

    """Translate what is missing, and give the files their names once they are whole."""
    from stacl.support.progress import Progress

    partial = _partial(files)
    try:
        _claim(args.out.with_name(f"{args.out.name}.json"), facts, partial)
        if any(file.exists() for file in partial):
            for one, other in zip(partial, files, strict=True):
                if other.exists():  # a kill came between the two last renames
                    other.replace(one)
        done = _keep_whole_lines(partial)
        _skip(lines, partial[0], done)
        bar = Progress("lines", done=done)
        with partial[0].open("ab") as sources, partial[1].open("ab") as targets:
            for block in iter(lambda: list(itertools.islice(lines, BLOCK)), []):
                traces = translator.translate_lines(block, chosen, decoding=Decoding(beam=args.beam), size=args.size)
                _append(sources, block)
                _append(targets, [translator.target_language.join(trace.target) for trace in traces])
                done += len(block)
                bar.update(done)
        bar.close()
        if not done:
            raise UserError(f"corpus {facts['corpus']} has no lines")
        for one, other in zip(partial, files, strict=True):
            one.replace(other)
    except OSError as error:
        raise UserError(f"{error.filename or args.out} cannot be written: {error.strerror or error}") from None


def _partial(files: tuple[Path, ...]) -> list[Path]:
    """What they are called while they grow."""
    return [file.with_name(f".partial-{file.name}") for file in files]


def _claim(path: Path, facts: dict[str, object], partial: list[Path]) -> None:
    """What the files are made with; a half-made file is continued only in the same way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = _facts(path)
    if path.exists() and not before:
        raise UserError(f"{path} is there already and says nothing of a distillation; choose another --out")
    if any(file.exists() for file in partial) and before:
        changed = [name for name in facts if before.get(name) != facts[name]]
        if changed:
            name = changed[0]
            raise UserError(
                f"{partial[0].parent} holds a half-made distillation with {name} {before.get(name)}, not "
                f"{facts[name]}; finish it so, or remove {partial[0].name} and {partial[1].name}"
            )
    write_text_atomically(path, json.dumps(facts) + "\n")


def _facts(path: Path) -> dict[str, object]:
    """What an earlier distillation wrote of itself; nothing if the file is somebody else's, or there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and "policy" in found else {}


def _keep_whole_lines(partial: list[Path]) -> int:
    """Cut what a kill left half-written; the number of lines that both files have."""
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
    """Past what was translated before, which must be the same text: the corpus may have been edited, or be another."""
    if not done:
        return
    with sources.open("rb") as file:
        for number, before in enumerate(itertools.islice(file, done), start=1):
            line = next(lines, None)
            if line is None or _written(line) != before:
                now = "the corpus ends before it" if line is None else "the corpus has another there"
                raise UserError(f"{sources}:{number} was translated before, but {now}; remove it to begin anew")


def _append(file: BinaryIO, lines: list[str]) -> None:
    file.writelines(map(_written, lines))
    file.flush()


def _written(line: str) -> bytes:
    return f"{' '.join(line.splitlines())}\n".encode()
