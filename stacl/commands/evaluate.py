"""Translate a test set under one or more policies and score it: quality and latency, with signatures.

  stacl evaluate runs/multi30k-de-en --source test2016.de --reference test2016.en --policy wait-k:1 wait-k:3 full
  stacl evaluate RUN --source src.zh --reference a.en b.en c.en --policy wait-k:5 --beam 5 --json
  stacl evaluate RUN --source src.de --reference ref.en --policy wait-k:3 --live --out results/

With --out, traces and scores are kept in a folder, and the same command goes on after an interruption. --live runs
every sentence through a live session by itself, so that computing time is measured too.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from stacl.atomic import write_text_atomically
from stacl.errors import UserError
from stacl.logs import read_lines
from stacl.policies.base import policy
from stacl.significance import SAMPLES
from stacl.trace import UNITS

COLUMNS = ("BLEU", "chrF", "AL", "LAAL", "AP", "CW", "DAL")


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help="a run folder")
    add("--source", required=True, metavar="F", help="source text, a sentence a line")
    add("--reference", required=True, nargs="+", metavar="F", help="reference translations, a file each")
    add("--policy", nargs="+", metavar="P", help="reading policies (default: the model's own)")
    add(
        "--beam",
        type=int,
        default=1,
        metavar="N",
        help="beam for what follows the end of the source (default 1: greedy)",
    )
    add("--early-end", action="store_true", help="let the output end before the source has ended")
    add("--live", action="store_true", help="through live sessions, one by one, measuring the time they take")
    add("--unit", choices=UNITS[:3], help="what latency counts (default: words; characters for Chinese output)")
    add("--intervals", nargs="?", type=int, const=SAMPLES, default=0, metavar="N", help="95%% bootstrap intervals")
    add("--json", action="store_true", help="print a list of JSON objects, one a policy")
    add("--out", type=Path, metavar="DIR", help="keep traces and scores in this folder")


def run(args: argparse.Namespace) -> int:
    sources = read_lines(args.source)
    references = {name: read_lines(name) for name in args.reference}
    for name, lines in references.items():
        if len(lines) != len(sources):
            raise UserError(
                f"{name} has {len(lines)} lines, {args.source} has {len(sources)}: they must be the same text"
            )
    wanted = [policy(spec).settled() for spec in args.policy or ()]
    if args.beam < 1:
        raise UserError(f"--beam is at least 1 (greedy), not {args.beam}")

    from stacl import api
    from stacl.console import Progress
    from stacl.evaluate import Decoding, evaluate

    translator = api.load(args.model)
    results: list[dict[str, Any]] = []
    for chosen in wanted or [translator.policy]:
        bar = Progress(f"{chosen}: sentence", len(sources))
        decoding = Decoding(chosen, args.beam, args.early_end, args.live)
        results.append(
            evaluate(
                translator,
                sources,
                references,
                decoding,
                unit=args.unit,
                samples=args.intervals,
                out=args.out,
                progress=bar.update,
            )
        )
        bar.close()
    if args.out:
        write_text_atomically(args.out / "scores.json", json.dumps(results, indent=1) + "\n")
    print(json.dumps(results, indent=1) if args.json else table(results))
    return 0


def table(results: list[dict[str, Any]]) -> str:
    """A row a policy, then the signatures, which are the same for all but the decoding."""
    width = max(len("policy"), *(len(result["policy"]) for result in results))
    lines = ["policy".ljust(width) + "".join(name.rjust(8) for name in COLUMNS) + "   empty  loops"]
    for result in results:
        scores = (result["scores"].get(name) for name in COLUMNS)
        cells = "".join(f"{'-' if score is None else f'{score:.2f}':>8}" for score in scores)
        degenerate = result["degenerate"]
        lines.append(f"{result['policy']:<{width}}{cells}{degenerate['empty']:>8}{degenerate['loops']:>7}")
    lines.append("")
    signatures = results[0]["signatures"]
    lines += [f"{name}: {signatures[name]}" for name in ("decoding", *COLUMNS) if name in signatures]
    return "\n".join(lines)
