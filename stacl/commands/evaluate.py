"""Translate a test set under one or more policies and score it: quality and latency, with signatures.

  stacl evaluate runs/multi30k-de-en --source test2016.de --reference test2016.en --policy wait-k:1 wait-k:3 full
  stacl evaluate RUN --source src.zh --reference a.en b.en c.en --policy wait-k:5 --beam 5 --json
  stacl evaluate RUN --source src.de --reference ref.en --policy wait-k:3 --live --out results/
  stacl evaluate de-en --set multi30k/test2016 eval-deen/newstest2015 --root DIR --policy wait-k:3 wait-k:9 full

With --out, traces and scores are kept in a folder, and the same command continues after an interruption. Traces of
another text or model with the same name are renamed, not overwritten. Several commands may share one --out if their
policies differ.

--live translates the sentences one by one in live sessions and measures the computing time. It reports the delay behind
a speaker of the given --pace in milliseconds (AL_CA), and the computing time relative to the speaking time (RTF).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from stacl.corpora.base import ROOT_VARIABLE
from stacl.evaluation import results
from stacl.evaluation.test_set import TestSet
from stacl.metrics.significance import SAMPLES, check_samples
from stacl.policies.base import policy
from stacl.support.errors import UserError
from stacl.traces.simulated_speaker import PACE, check_pace

if TYPE_CHECKING:
    from stacl.evaluation.evaluate import Condition
    from stacl.live.translator import Translator

UNITS = ("word", "char")  # traces hold words, from which characters can be counted


def configure(parser: argparse.ArgumentParser) -> None:
    # The model comes first: options with several values would also consume it.
    parser.usage = "%(prog)s MODEL (--source F --reference F [F ...] | --set NAME/SPLIT [...]) [options]"
    add = parser.add_argument
    add("model", metavar="MODEL", help="a shipped model or a run folder")
    add("--source", metavar="F", help="source text, one sentence per line")
    add("--reference", nargs="+", metavar="F", help="reference translations, one file each")
    add("--set", nargs="+", metavar="NAME/SPLIT", help="instead: test sets of corpora, as `stacl data` lists them")
    add("--root", metavar="DIR", help=f"folder of the data for --set (default: ${ROOT_VARIABLE})")
    add("--policy", nargs="+", metavar="P",
        help="reading policies (default: the model's own; wait-k:5 for a model trained for every k)")  # fmt: skip
    add("--beam", type=int, default=1, metavar="N", help="beam once the source has ended (default 1: greedy)")
    add("--ahead", type=int, default=0, metavar="N",
        help="beam look-ahead while the source is still open, in pieces (default 0)")  # fmt: skip
    add("--early-end", action="store_true", help="allow the output to end before the source has ended")
    add("--live", action="store_true", help="translate in live sessions, one by one, and measure the time")
    add("--pace", type=float, metavar="SECONDS", help=f"seconds per word of the speaker of --live (default {PACE:g})")
    add("--unit", choices=UNITS, help="unit of latency (default: words; characters for Chinese output)")
    add("--intervals", nargs="?", type=int, const=SAMPLES, default=0, metavar="N",
        help=f"95%% bootstrap intervals from N resampled corpora (default {SAMPLES})")  # fmt: skip
    add("--json", action="store_true", help="print a list of JSON objects, one per policy")
    add("--out", type=Path, metavar="DIR", help="keep traces and scores in this folder")


def run(args: argparse.Namespace) -> int:
    if args.set and (args.source or args.reference):
        raise UserError("--set has its own text; remove --source and --reference")
    if not args.set and not (args.source and args.reference):
        raise UserError("nothing to evaluate on; give --source F --reference F, or --set NAME/SPLIT")
    # Mistakes are reported before the model is loaded.
    own_files = None if args.set else TestSet.from_files(args.source, args.reference)
    policies = [policy(spec).decoding_policy() for spec in args.policy or ()]
    check_samples(args.intervals)
    pace = _pace(args)
    from stacl import api
    from stacl.decoding.options import Decoding
    from stacl.evaluation.evaluate import Condition

    decoding = Decoding(beam=args.beam, ahead=args.ahead, early_end=args.early_end)
    translator = api.load(args.model)
    codes = translator.source_language.code, translator.target_language.code
    sets = [own_files] if own_files else [TestSet.from_corpus(name, *codes, args.root) for name in args.set]
    conditions = [Condition(chosen, decoding, pace) for chosen in policies or [translator.policy]]
    found: list[results.Result] = []
    for test_set in sets:
        scores = [_evaluated(translator, test_set, condition, args) for condition in conditions]
        found += scores
        if not args.json:
            print(results.table(scores, test_set.name), flush=True)
    if args.out:
        results.save(args.out, found)
    if args.json:
        print(json.dumps(found, indent=1))
    return 0


def _pace(args: argparse.Namespace) -> float | None:
    if not args.live and args.pace is not None:
        raise UserError("--pace requires --live")
    if args.pace is not None:
        check_pace(args.pace)
    return (PACE if args.pace is None else args.pace) if args.live else None


def _evaluated(
    translator: Translator, test_set: TestSet, condition: Condition, args: argparse.Namespace
) -> results.Result:
    from stacl.evaluation.evaluate import evaluate
    from stacl.support.progress import Progress

    bar = Progress(f"{test_set.name or args.source} {condition.policy}: sentence", len(test_set.sources))
    scores = evaluate(
        translator,
        test_set.sources,
        test_set.references,
        condition,
        unit=args.unit,
        samples=args.intervals,
        out=args.out / test_set.name.replace(":", "-") if args.out else None,
        progress=bar.update,
    )
    bar.close()
    return {"model": args.model} | ({"set": test_set.name} if test_set.name else {}) | scores
