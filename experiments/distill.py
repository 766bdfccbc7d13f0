"""Translate training text with a model, and keep what came out right: pairs to train on beside the references.

    python -m experiments.distill MODEL CORPUS ... --root FOLDER --out PREFIX [--policy wait-k:5] [--keep 60]

A translation made k words behind says things in the order in which they are heard, and one model says the same thing
in one way; human references do neither. Kept are the translations whose chrF with the reference is at least --keep,
and that are not the reference itself. PREFIX.SOURCE and PREFIX.TARGET are then the corpus `files:path=PREFIX`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from sacrebleu.metrics import CHRF

from stacl import api
from stacl.corpora.base import corpus

BLOCK = 512


def chosen(pairs: Iterator[tuple[str, str]], least: int, most: int, lines: int, seed: int) -> list[tuple[str, str]]:
    """At most so many pairs, each once, of those whose source is neither so short that all translate it alike nor long."""
    found = list(dict.fromkeys(pair for pair in pairs if least <= len(pair[0].split()) <= most))
    random.Random(seed).shuffle(found)
    return found[:lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("model", metavar="MODEL", help="a shipped model or a run folder")
    add("corpora", nargs="+", metavar="CORPUS", help="as in data.corpora of a configuration; their training splits")
    add("--root", required=True, metavar="FOLDER", help="where the data folders lie")
    add("--out", required=True, type=Path, metavar="PREFIX", help="write PREFIX.SOURCE and PREFIX.TARGET")
    add("--policy", default="wait-k:5", help="reading policy (default %(default)s)")
    add("--beam", type=int, default=1)
    add("--keep", type=float, default=60.0, metavar="CHRF", help="least chrF with the reference (default %(default)g)")
    add("--words", type=int, nargs=2, default=(6, 30), metavar=("LEAST", "MOST"), help="of a source (default 6 30)")
    add("--lines", type=int, default=10**9, help="at most so many of each corpus")
    args = parser.parse_args()

    translator = api.load(args.model)
    source, target = translator.source_language, translator.target_language
    pairs = []
    for spec in args.corpora:
        of_one = corpus(spec, source.code, target.code, args.root).open("train")
        pairs += chosen(of_one, *args.words, args.lines, seed=1)
    pairs.sort(key=lambda pair: len(pair[0]))  # lines of a length are translated together
    chrf, kept, start = CHRF(), 0, time.monotonic()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with (
        args.out.with_suffix(f".{source.code}").open("w", encoding="utf-8") as sources,
        args.out.with_suffix(f".{target.code}").open("w", encoding="utf-8") as targets,
    ):
        for done in range(0, len(pairs), BLOCK):
            block = list(islice(pairs, done, done + BLOCK))
            traces = translator.translate_lines([pair[0] for pair in block], args.policy, beam=args.beam)
            for (heard, reference), trace in zip(block, traces, strict=True):
                said = target.join(trace.target)
                if said != reference and chrf.sentence_score(said, [reference]).score >= args.keep:
                    kept += 1
                    sources.write(heard + "\n")
                    targets.write(said + "\n")
            ready = done + len(block)
            left = (time.monotonic() - start) / ready * (len(pairs) - ready) / 60
            print(
                f"{ready:,} of {len(pairs):,} lines, {kept:,} kept, {left:.0f} min to go", file=sys.stderr, flush=True
            )


if __name__ == "__main__":
    main()
