"""Translate a test set under one or more policies and score it: quality and latency, with signatures.

  stacl evaluate runs/multi30k-de-en --source test2016.de --reference test2016.en --policy wait-k:1 wait-k:3 full
  stacl evaluate RUN --source src.zh --reference a.en b.en c.en --policy wait-k:5 --beam 5 --json
  stacl evaluate RUN --source src.de --reference ref.en --policy wait-k:3 --live --out results/
  stacl evaluate de-en --set multi30k/test2016 eval-deen/newstest2015 --root DIR --policy wait-k:3 wait-k:9 full

With --out, traces and scores are kept in a folder, and the same command goes on after an interruption; traces of
another text or model that had the same name are set aside there, not overwritten. Several commands may run at once
with one --out, each under policies of its own.

--live runs every sentence through a live session by itself, so that computing time is measured too: how far the
listener is behind a speaker of the given --pace, in milliseconds (AL_CA), the share of his time that the machine
computes (RTF).
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stacl.corpora.base import ROOT_VARIABLE, corpus
from stacl.metrics.significance import SAMPLES, check_samples
from stacl.policies.base import Policy, policy
from stacl.support.errors import UserError
from stacl.support.files import sole_writer, write_text_atomically
from stacl.traces.logs import read_lines
from stacl.traces.simulated_speaker import PACE

if TYPE_CHECKING:
    from stacl.api import Translator

COLUMNS = ("BLEU", "chrF", "AL", "LAAL", "AP", "CW", "DAL")
UNITS = ("word", "char")  # our traces hold words, and characters follow from them
LIVE = ("AL_CA", "RTF", "ms_per_word")  # what only a clock can tell
DIGITS = {"RTF": 4}  # a hundredth of real time is far too coarse


def configure(parser: argparse.ArgumentParser) -> None:
    # Options that take several values would take the model too: it stands first.
    parser.usage = "%(prog)s MODEL (--source F --reference F [F ...] | --set NAME/SPLIT [...]) [options]"
    add = parser.add_argument
    add("model", metavar="MODEL", help="a shipped model or a run folder")
    add("--source", metavar="F", help="source text, a sentence a line")
    add("--reference", nargs="+", metavar="F", help="reference translations, a file each")
    add("--set", nargs="+", metavar="NAME/SPLIT", help="instead: test sets of corpora, as `stacl data` lists them")
    add("--root", metavar="DIR", help=f"where the data folders of --set are (default: ${ROOT_VARIABLE})")
    add(
        "--policy", nargs="+", metavar="P", help="reading policies (default: the model's own, k = 5 of one for every k)"
    )
    add(
        "--beam",
        type=int,
        default=1,
        metavar="N",
        help="beam for what follows the end of the source (default 1: greedy)",
    )
    add("--ahead", type=int, default=0, metavar="N", help="also before: let the beam look so many pieces ahead (0)")
    add("--early-end", action="store_true", help="let the output end before the source has ended")
    add("--live", action="store_true", help="through live sessions, one by one, measuring the time they take")
    add("--pace", type=float, metavar="SECONDS", help=f"of the speaker of --live, a word (default {PACE:g})")
    add("--unit", choices=UNITS, help="what latency counts (default: words; characters for Chinese output)")
    add("--intervals", nargs="?", type=int, const=SAMPLES, default=0, metavar="N", help="95%% bootstrap intervals")
    add("--json", action="store_true", help="print a list of JSON objects, one a policy")
    add("--out", type=Path, metavar="DIR", help="keep traces and scores in this folder")


@dataclass(frozen=True)
class TestSet:
    """What to translate and what to compare it with; `name` is empty for a user's own files."""

    name: str
    sources: list[str]
    references: dict[str, list[str]]


def run(args: argparse.Namespace) -> int:
    if args.set and (args.source or args.reference):
        raise UserError("--set brings its own text; leave out --source and --reference")
    if not args.set and not (args.source and args.reference):
        raise UserError("what to evaluate on: --source F --reference F, or --set NAME/SPLIT")
    own = None if args.set else _own_files(args.source, args.reference)
    wanted = [policy(spec).settled() for spec in args.policy or ()]
    check_samples(args.intervals)
    if args.pace is not None and not args.live:
        raise UserError("--pace is that of the speaker of --live; batches have none")
    if args.pace is not None and not 0 < args.pace < math.inf:
        raise UserError(f"--pace is a time above 0 in seconds, not {args.pace:g}")

    from stacl import api
    from stacl.decoding.beam import check

    check(args.beam, args.ahead)
    translator = api.load(args.model)
    sets = [own] if own else [_named(name, translator, args.root) for name in args.set]
    results: list[dict[str, Any]] = []
    for one in sets:
        found = [_evaluated(translator, one, chosen, args) for chosen in wanted or [translator.policy]]
        results += found
        if not args.json:
            print(table(found, one.name), flush=True)
    if args.out:
        scores = args.out / "scores.json"
        with sole_writer(scores):  # a sweep may run several of us at once
            _keep(scores, results)
    if args.json:
        print(json.dumps(results, indent=1))
    return 0


def _evaluated(translator: Translator, test: TestSet, chosen: Policy, args: argparse.Namespace) -> dict[str, Any]:
    from stacl.evaluation.evaluate import Decoding, evaluate
    from stacl.support.progress import Progress

    bar = Progress(f"{test.name or args.source} {chosen}: sentence", len(test.sources))
    scores = evaluate(
        translator,
        test.sources,
        test.references,
        Decoding(chosen, args.beam, args.ahead, args.early_end, args.live, PACE if args.pace is None else args.pace),
        unit=args.unit,
        samples=args.intervals,
        out=args.out / test.name.replace(":", "-") if args.out else None,
        progress=bar.update,
    )
    bar.close()
    return {"model": args.model} | ({"set": test.name} if test.name else {}) | scores


def _keep(path: Path, results: list[dict[str, Any]]) -> None:
    """Beside what was measured before: only the same set under the same decoding is replaced. Figures of other weights
    or of another text would make one curve with these: like their traces, they are set aside.
    """
    from stacl.evaluation.evaluate import set_aside

    def which(result: dict[str, Any]) -> tuple[Any, Any]:
        return result.get("set"), result["signatures"]["decoding"]

    texts = {result.get("set"): result["text"] for result in results}
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        others = [one for one in before if which(one) not in map(which, results)]
        ours = all(
            one["weights"] == results[0]["weights"] and texts.get(one.get("set"), one["text"]) == one["text"]
            for one in before
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        others, ours = [], False  # there is none, or it is none of ours
    if not ours:
        set_aside(path)
        others = []
    write_text_atomically(path, json.dumps(others + results, indent=1) + "\n")


def _own_files(source: str, names: list[str]) -> TestSet:
    sources = read_lines(source)
    references = {name: read_lines(name) for name in names}
    if len(references) < len(names):
        raise UserError("a reference is given twice")
    for name, lines in references.items():
        if len(lines) != len(sources):
            raise UserError(f"{name} has {len(lines)} lines, {source} has {len(sources)}: they must be the same text")
    return TestSet("", sources, references)


def _named(name: str, translator: Translator, root: str | None) -> TestSet:
    """A split of a corpus in the model's direction, with all its references."""
    spec, slash, split = name.rpartition("/")
    if not slash:
        raise UserError(f"--set takes NAME/SPLIT, for example multi30k/test2016, not {name!r}")
    codes = translator.source_language.code, translator.target_language.code
    rows = list(corpus(spec, *codes, root).open_references(split))
    several = zip(*(references for _, references in rows), strict=True)
    return TestSet(
        name, [source for source, _ in rows], {f"{name}#{n}": list(lines) for n, lines in enumerate(several)}
    )


def table(results: list[dict[str, Any]], name: str = "") -> str:
    """A row a policy, then the signatures, once where policies share them."""
    width = max(len("policy"), *(len(result["policy"]) for result in results))
    lines = [name] if name else []
    columns = COLUMNS + (LIVE if any(name in result["scores"] for result in results for name in LIVE) else ())
    widths = {column: max(8, len(column) + 2) for column in columns}
    lines += ["policy".ljust(width) + "".join(column.rjust(widths[column]) for column in columns) + "   empty  loops"]
    for result in results:
        scores = {column: result["scores"].get(column) for column in columns}
        cells = "".join(
            f"{'-' if score is None else f'{score:.{DIGITS.get(column, 2)}f}':>{widths[column]}}"
            for column, score in scores.items()
        )
        degenerate = result["degenerate"]
        lines.append(f"{result['policy']:<{width}}{cells}{degenerate['empty']:>8}{degenerate['loops']:>7}")
    lines.append("")
    for column in ("decoding", *columns):
        policies: dict[str, list[str]] = {}  # that share a signature
        for result in results:
            if column in result["signatures"]:
                policies.setdefault(result["signatures"][column], []).append(result["policy"])
        for signature, sharing in policies.items():
            of = f" ({', '.join(sharing)})" if len(policies) > 1 and column != "decoding" else ""  # which names its own
            lines.append(f"{column}{of}: {signature}")
    return "\n".join(lines)
