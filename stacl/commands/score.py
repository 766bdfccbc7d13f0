"""Score a log of read/write decisions: latency, and quality if references are given.

FILE is a log of any system: read/write strings (0 or R, 1 or W), our traces, or SimulEval's instances.log (or the
folder that holds it). The format is detected. Every number is printed with a signature that says how it was computed.

  stacl score paths.txt
  stacl score traces.jsonl --reference ref1.en ref2.en --intervals
  stacl score simuleval-output/instances.log --json
  stacl score ours.jsonl --baseline theirs.jsonl --reference ref.en
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import chain, islice
from typing import Any

from stacl.evaluation.score_tables import corpus_table, sentence_table
from stacl.evaluation.texts import compared, exported
from stacl.metrics import CorpusReport, measure
from stacl.metrics.bleu import default_tokenizer
from stacl.metrics.comet import DEFAULT_MODEL
from stacl.metrics.comparison import compare
from stacl.metrics.significance import SAMPLES, check_samples
from stacl.support.errors import UserError
from stacl.traces import logs
from stacl.traces.trace import UNITS

_LANGUAGE_SAMPLE = 100  # lines of a reference, or sentences of a log, from which the language is detected


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s FILE [options]"  # the file comes first: --reference would also consume it
    add = parser.add_argument
    add("file", metavar="FILE", help="the log; - is stdin")
    add("--format", choices=logs.FORMATS, help="format of the log (default: detected from its first line)")
    add("--reference", nargs="+", default=[], metavar="F", help="reference translations, one file each, line by line")
    add("--hypothesis", metavar="F", help="text of the translations, for a log without words")
    add("--source", metavar="F", help="source text for COMET and --export, for a log without it")
    add("--unit", choices=UNITS[:3], help="unit of latency (default: as logged); char counts the characters of words")
    add("--tokenize", metavar="T", help="sacreBLEU's tokenizer (default: zh if the references are Chinese, else 13a)")
    add("--weighted", action="store_true", help="weight the latency of each sentence by its source length")
    add("--intervals", nargs="?", type=int, const=SAMPLES, default=0, metavar="N",
        help=f"95%% bootstrap intervals from N resampled corpora (default {SAMPLES})")  # fmt: skip
    add("--baseline", metavar="FILE", help="log of another system on the same sentences, for paired tests")
    add("--comet", nargs="?", const=DEFAULT_MODEL, metavar="MODEL",
        help=f"also score with COMET, if it is installed (default model {DEFAULT_MODEL})")  # fmt: skip
    add("--per-sentence", action="store_true", help="print the scores of each sentence before those of the corpus")
    add("--export", metavar="FILE", help="write the log in another format: .rw, .jsonl (trace), .log (SimulEval)")
    add("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    check_samples(args.intervals)
    references = {path: logs.read_lines(path) for path in args.reference} or None
    if len(references or ()) < len(args.reference):
        raise UserError("a reference is given twice")
    traces = logs.read(args.file, args.format, args.unit)
    first = list(islice(traces, _LANGUAGE_SAMPLE))
    traces = chain(first, traces)
    reference = references[args.reference[0]] if references else []
    sources = logs.read_lines(args.source) if args.source else None
    hypotheses = logs.read_lines(args.hypothesis) if args.hypothesis else None
    shown = reference[:_LANGUAGE_SAMPLE] if references else [trace.reference or "" for trace in first]
    options: dict[str, Any] = {
        "unit": args.unit,
        "weighted": args.weighted,
        "tokenize": args.tokenize or default_tokenizer(shown),
        "comet": args.comet,
        "sources": sources,
    }
    if args.export is not None:
        traces = exported(traces, args.export, reference, hypotheses or (), sources or ())
    if hypotheses is not None:
        traces = compared(traces, hypotheses, args.file, _warn)
    rows: list[dict[str, float | None]] = []
    report = measure(
        traces,
        references,
        samples=args.intervals,
        hypotheses=hypotheses,
        keep=args.baseline is not None,
        on_sentence=(lambda number, row: rows.append(row)) if args.per_sentence else None,
        **options,
    )
    if sources is not None and len(sources) != report.sentences:
        raise UserError(f"{args.source} has {len(sources)} lines, but {args.file} has {report.sentences} sentences")
    _warn_without_words(report, args.file, "; give them with --hypothesis")
    found: dict[str, Any] = {"file": args.file} | report.as_dict()
    if args.baseline:
        baseline = _baseline(args, references, options)
        found["baseline"] = {"file": args.baseline, "scores": baseline.scores}
        found["p_values"] = compare(report, baseline, (args.file, args.baseline), options["tokenize"])
    if args.json:
        json.dump(found | ({"per_sentence": rows} if rows else {}), sys.stdout, ensure_ascii=False, indent=1)
        print()
        return 0
    if rows:
        print(sentence_table(rows))
    print(corpus_table(found))
    return 0


def _baseline(
    args: argparse.Namespace, references: dict[str, list[str]] | None, options: dict[str, Any]
) -> CorpusReport:
    try:
        report = measure(logs.read(args.baseline, None, args.unit), references, keep=True, **options)
    except UserError as error:
        named = str(error).startswith(args.baseline)
        raise UserError(str(error) if named else f"--baseline {args.baseline}: {error}") from None
    _warn_without_words(report, args.baseline)
    return report


def _warn_without_words(report: CorpusReport, path: str, remedy: str = "") -> None:
    if report.wordless:
        _warn(f"no BLEU and no chrF: sentence {report.wordless} of {path} has no words{remedy}")


def _warn(message: str) -> None:
    print(f"stacl score: {message}", file=sys.stderr)
