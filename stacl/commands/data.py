"""List corpora, show statistics of one, verify its files, or prepare it for training.

stacl data                              all corpora with their licences
stacl data multi30k --root DIR          description and statistics
stacl data multi30k --root DIR --verify compare the files with their checksums
stacl data multi30k mixed-deen:exclude=ted --root DIR --out PREPARED
                                        filtered, line-aligned text files, one pair per split
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO, TypeVar

from stacl.corpora.base import ROOT_VARIABLE, Concatenation, Corpus, FolderCorpus, corpus
from stacl.support import plugins
from stacl.support.errors import UserError
from stacl.text.languages import Language, language
from stacl.training.filters import PairFilter, filtered

Row = TypeVar("Row")
LONGEST, RATIO = 100, 4  # filters of training pairs: maximum words, maximum length ratio


@dataclass(frozen=True)
class Statistics:
    """Lengths of a split, in words of each language."""

    pairs: int
    source_words: int
    target_words: int
    source_longest: int
    target_longest: int

    @property
    def ratio(self) -> float:
        """r: target words per source word, which sets the catch-up rate."""
        return self.target_words / self.source_words if self.source_words else float("nan")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("corpora", nargs="*", metavar="NAME", help="one or more corpora: NAME[:option=value,...][*N]")
    parser.add_argument("--root", metavar="DIR", help=f"folder of the data (default: ${ROOT_VARIABLE})")
    parser.add_argument("--source", metavar="LANG", help="source language")
    parser.add_argument("--target", metavar="LANG", help="target language")
    parser.add_argument("--split", metavar="SPLIT", help="only this split (default: all)")
    parser.add_argument("--verify", action="store_true", help="compare the files with their checksums")
    parser.add_argument("--out", metavar="DIR", help="write line-aligned text files here; training splits are filtered")
    parser.add_argument(
        "--longest", type=int, metavar="N", help=f"with --out: maximum words per side (default {LONGEST})"
    )
    parser.add_argument(
        "--ratio",
        type=float,
        metavar="R",
        help=f"with --out: maximum length ratio, after adding 3 words to each side (default {RATIO})",
    )
    parser.add_argument("--duplicates", action="store_true", help="with --out: keep duplicate pairs")


def run(args: argparse.Namespace) -> int:
    if not args.corpora:
        if args.verify or args.out:
            raise UserError("--verify and --out require the name of a corpus; `stacl data` lists them")
        return _list()
    if not args.out and (args.duplicates or args.longest is not None or args.ratio is not None):
        raise UserError("--longest, --ratio and --duplicates require --out")
    if args.verify and (args.split or args.out):
        raise UserError("--verify checks all files of a corpus; remove --split and --out")
    specs = args.corpora[0] if len(args.corpora) == 1 else args.corpora
    found = corpus(specs, args.source, args.target, args.root)
    splits = [args.split] if args.split else list(found.splits)
    if args.verify:
        return _verify(found)
    if args.out:
        return _prepare(found, splits, args)
    print(_card(found))
    for split in splits:
        _show_statistics(found, split)
    return 0


def _list() -> int:
    for name in plugins.names("corpora"):
        kind: type[Corpus] = plugins.find("corpora", name, Corpus)  # type: ignore[type-abstract]
        pair = "-".join(getattr(kind, "languages", ("any", "any")))
        print(f"{name:12} {pair:8} {kind.description}\n{'':21} licence: {kind.licence}")
    return 0


def _card(found: Corpus) -> str:
    lines = [
        f"{found.name}: {found.description}",
        f"direction: {found.source}-{found.target}",
        f"licence: {found.licence}",
        f"cite: {found.citation}",
        f"origin: {found.origin}",
    ]
    for part in [part for part, _ in found.parts] if isinstance(found, Concatenation) else [found]:
        if isinstance(part, FolderCorpus):
            lines += [f"domain {domain}: {licence}" for domain, licence in part.used_domains().items()]
    return "\n".join(lines)


def _show_statistics(found: Corpus, split: str) -> None:
    figures = statistics(found, split)
    print(
        f"{split} ({found.splits[split]}): {figures.pairs:,} pairs;"
        f" {found.source} {figures.source_words:,} words, {figures.source_words / figures.pairs:.1f} a line,"
        f" longest {figures.source_longest};"
        f" {found.target} {figures.target_words:,} words, {figures.target_words / figures.pairs:.1f} a line,"
        f" longest {figures.target_longest}; r = {figures.ratio:.3f}"
    )


def statistics(found: Corpus, split: str) -> Statistics:
    source, target = language(found.source), language(found.target)
    pairs = source_words = target_words = source_longest = target_longest = 0
    for left, right in _progress(found.open(split), f"counting {split}"):
        lengths = len(source.split(left)), len(target.split(right))
        pairs += 1
        source_words, target_words = source_words + lengths[0], target_words + lengths[1]
        source_longest, target_longest = max(source_longest, lengths[0]), max(target_longest, lengths[1])
    return Statistics(pairs, source_words, target_words, source_longest, target_longest)


def _verify(found: Corpus) -> int:
    states = []
    for state in found.verify():
        states.append(state)
        known = "ok" if state.expected else "no known checksum; it has"
        verdict = known if state.fits else "differs: it has" if state.found else "missing"
        print(f"{state.path}: {verdict}{'' if verdict in ('ok', 'missing') else ' sha256 ' + state.found}")
    bad = [state for state in states if not state.fits]
    if bad:
        raise UserError(
            f"{len(bad)} of {len(states)} files of {found.name} are missing or differ,"
            f" the first is {bad[0].path}; download them again from {found.origin}"
        )
    if not states:
        print(f"{found.name} has no files")
    return 0


def _prepare(found: Corpus, splits: Iterable[str], args: argparse.Namespace) -> int:
    """Write the splits as text files. Only training splits are filtered: test sets must stay complete."""
    out = Path(args.out)
    longest = LONGEST if args.longest is None else args.longest
    ratio = RATIO if args.ratio is None else args.ratio
    languages = language(found.source), language(found.target)
    for split in splits:
        if found.splits.get(split) == "train":
            keep = PairFilter(*languages, longest=longest, ratio=ratio, duplicates=args.duplicates)
            rows = ((pair.source, (pair.target,)) for pair in filtered(found, split, keep))
            paths = _write(rows, out, split, languages)
            print(f"{split}: {keep.report}".replace("\n", f"\n{split}: "))
        else:
            paths = _write(found.open_references(split), out, split, languages)
        print(f"{split}: wrote {', '.join(map(str, paths))}")
    return 0


def _write(
    rows: Iterable[tuple[str, tuple[str, ...]]], out: Path, split: str, languages: tuple[Language, Language]
) -> list[Path]:
    """Write one file per side, and further references as SPLIT.ref2.LANGUAGE. Files appear when complete."""
    source, target = languages
    second = f"target.{target.code}" if source == target else target.code
    paths = [out / f"{split}.{source.code}", out / f"{split}.{second}"]
    for path in paths:
        if path.exists():
            raise UserError(f"{path} already exists; name another folder with --out")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            files = [stack.enter_context(_create(_partial(path))) for path in paths]
            for left, references in _progress(rows, f"writing {split}"):
                while len(files) < 1 + len(references):
                    paths.append(out / f"{split}.ref{len(paths)}.{target.code}")
                    files.append(stack.enter_context(_create(_partial(paths[-1]))))
                for file, text in zip(files, (left, *references), strict=True):
                    file.write(text + "\n")
        for path in paths:
            _partial(path).replace(path)
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror}); name another folder with --out") from error
    finally:
        for path in paths:
            if _partial(path).exists():
                _partial(path).unlink()
    return paths


def _create(path: Path) -> TextIO:
    return path.open("w", encoding="utf-8", newline="\n")


def _partial(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def _progress(rows: Iterable[Row], what: str) -> Iterator[Row]:
    """Yield the rows, and print the progress on a terminal every half second."""
    began = shown = time.monotonic()
    number = 0
    for number, row in enumerate(rows, start=1):
        if number % 256 == 0 and sys.stderr.isatty() and time.monotonic() - shown > 0.5:
            shown = time.monotonic()
            print(
                f"\r{what}: {number:,} pairs, {number / (shown - began):,.0f} a second",
                end="",
                file=sys.stderr,
            )
        yield row
    if shown > began:
        print(f"\r{what}: {number:,} pairs{'':30}", file=sys.stderr)
