"""Score a log of read/write decisions: latency, and with references quality.

FILE is a log of any system: read/write strings (0 or R, 1 or W), our traces, or SimulEval's instances.log
(or the folder that holds it); the format is guessed. Every number is printed with the signature that says
how it was made.

  stacl score paths.txt
  stacl score traces.jsonl --reference ref1.en ref2.en --intervals
  stacl score simuleval-output/instances.log --json
  stacl score ours.jsonl --baseline theirs.jsonl --reference ref.en
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from stacl.metrics import CorpusReport, measure, reference_length
from stacl.metrics.comet import DEFAULT_MODEL
from stacl.metrics.significance import SAMPLES, check_samples, paired_p_values, paired_quality
from stacl.support.errors import UserError
from stacl.text.characters import is_han
from stacl.traces import logs
from stacl.traces.trace import UNITS, Trace

_LOOKED_AT = 100  # lines of a reference, or sentences of a log, to know what language it is
EXPORTS = {".rw": "rw", ".txt": "rw", ".jsonl": "trace", ".json": "trace", ".log": "simuleval"}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "%(prog)s FILE [options]"  # --reference would take the file too: it stands first
    add = parser.add_argument
    add("file", metavar="FILE", help="the log; - is stdin")
    add("--format", choices=logs.FORMATS, help="the log's format (default: guessed from its first line)")
    add(
        "--reference",
        nargs="+",
        default=[],
        metavar="F",
        help="reference translations, a file each, a line a sentence",
    )
    add("--hypothesis", metavar="F", help="the translations' text, for a log that holds no words")
    add("--source", metavar="F", help="the source text of a log that holds none, for COMET and --export")
    add(
        "--unit",
        choices=UNITS[:3],
        help="what is counted; characters are taken from the words (default: as logged)",
    )
    add("--tokenize", metavar="T", help="sacreBLEU's tokenizer (default: zh if the references are Chinese, else 13a)")
    add("--weighted", action="store_true", help="weigh each sentence's latency with its source length")
    add("--intervals", nargs="?", type=int, const=SAMPLES, default=0, metavar="N",
        help=f"95%% bootstrap intervals from N resampled corpora (default {SAMPLES})")  # fmt: skip
    add(
        "--baseline",
        metavar="FILE",
        help="another system's log of the same sentences: paired tests against it",
    )
    add(
        "--comet",
        nargs="?",
        const=DEFAULT_MODEL,
        metavar="MODEL",
        help="score with COMET too, where it is installed",
    )
    add("--per-sentence", action="store_true", help="every sentence's scores before those of the corpus")
    add(
        "--export",
        metavar="FILE",
        help="write the log in another format: .rw, .jsonl (trace), .log (SimulEval)",
    )
    add("--json", action="store_true", help="print one JSON object")


def run(args: argparse.Namespace) -> int:
    check_samples(args.intervals)
    references = {path: logs.read_lines(path) for path in args.reference} or None
    if len(references or ()) < len(args.reference):
        raise UserError("a reference is given twice")
    log = logs.read(args.file, args.format, args.unit)
    first = list(islice(log, _LOOKED_AT))
    log = chain(first, log)
    sources = logs.read_lines(args.source) if args.source else None
    options: dict[str, Any] = {
        "unit": args.unit,
        "weighted": args.weighted,
        "tokenize": args.tokenize or _tokenizer(references, first),
        "comet": args.comet,
        "sources": sources,
    }
    hypotheses = logs.read_lines(args.hypothesis) if args.hypothesis else None
    table = _SentenceTable() if args.per_sentence else None
    traces = _exported(log, args.export, references or {}, hypotheses, sources)
    report = measure(
        traces if hypotheses is None else _compared(traces, hypotheses, args.file),
        references,
        samples=args.intervals,
        hypotheses=hypotheses,
        keep=args.baseline is not None,
        on_sentence=table.add if table else None,
        **options,
    )
    if sources is not None and len(sources) != report.sentences:
        raise UserError(f"{args.source} has {len(sources)} lines, but {args.file} has {report.sentences} sentences")
    _say_if_wordless(report, args.file, " (--hypothesis gives them)")
    found: dict[str, Any] = {"file": args.file} | report.as_dict()
    if args.baseline:
        try:
            other = measure(logs.read(args.baseline, None, args.unit), references, keep=True, **options)
        except UserError as error:
            named = str(error).startswith(args.baseline)
            raise UserError(str(error) if named else f"--baseline {args.baseline}: {error}") from None
        _say_if_wordless(other, args.baseline)
        found["baseline"] = {"file": args.baseline, "scores": other.scores}
        found["p_values"] = _p_values(report, other, args, options["tokenize"])
    if args.json:
        if table:
            found["per_sentence"] = table.rows
        json.dump(found, sys.stdout, ensure_ascii=False, indent=1)
        print()
    else:
        if table:
            table.print()
        print(_corpus_table(found))
    return 0


def _tokenizer(references: Mapping[str, Sequence[str]] | None, first: Sequence[Trace]) -> str:
    """What suits the references, which without a file are those of the log: Chinese has no spaces between its words."""
    own = [trace.reference or "" for trace in first]
    lines = next(iter(references.values()), [])[:_LOOKED_AT] if references else own
    letters = [character for line in lines for character in line if character.isalpha()]
    return "zh" if 2 * sum(map(is_han, letters)) > len(letters) else "13a"


def _say_if_wordless(report: CorpusReport, path: str, remedy: str = "") -> None:
    if report.wordless:
        print(
            f"stacl score: sentence {report.wordless} of {path} holds no words: no BLEU, no chrF{remedy}",
            file=sys.stderr,
        )


def _exported(
    traces: Iterable[Trace],
    path: str | None,
    references: Mapping[str, Sequence[str]],
    hypotheses: Sequence[str] | None,
    sources: Sequence[str] | None,
) -> Iterator[Trace]:
    """The same traces, written to a file on their way, with the reference and the words that the command was given."""
    if path is None:
        yield from traces
        return
    format = EXPORTS.get(Path(path).suffix)
    if format is None:
        raise UserError(f"--export {path}: the ending says the format, one of {', '.join(EXPORTS)}")
    given = zip_longest(traces, next(iter(references.values()), ()), hypotheses or (), sources or ())
    whole = (_with_texts(trace, *texts) for trace, *texts in given if trace is not None)
    yield from logs.passed_on(whole, path, format)


def _with_texts(trace: Trace, reference: str | None, text: str | None, source: str | None) -> Trace:
    """Words that the trace lacks are taken from the texts, where they are as many."""
    target, heard = tuple((text or "").split()), tuple((source or "").split())
    said = not trace.target and trace.unit == "word" and len(target) == len(trace.delays)
    read = not trace.source and trace.unit == "word" and len(heard) == trace.source_length
    return replace(
        trace,
        reference=trace.reference if reference is None else reference,
        target=target if said else trace.target,
        source=heard if read else trace.source,
    )


def _compared(traces: Iterable[Trace], hypotheses: Sequence[str], path: str) -> Iterator[Trace]:
    """The same traces. Latency counts what was logged, quality what was given: that the two differ has to be said."""
    unlike: list[tuple[int, int, int]] = []
    for number, (trace, text) in enumerate(zip_longest(traces, hypotheses), 1):
        if trace is None:
            break
        words = reference_length(text or "", trace.unit) if trace.unit in UNITS[:3] else None
        if text is not None and words is not None and words != len(trace.delays):
            unlike.append((number, len(trace.delays), words))
        yield trace
    if unlike:
        number, logged, given = unlike[0]
        more = f" (so also {len(unlike) - 1} more)" if len(unlike) > 1 else ""
        print(
            f"stacl score: sentence {number} of {path} writes {logged} units, its hypothesis has {given}{more}: "
            "are they of the same run?",
            file=sys.stderr,
        )


class _SentenceTable:
    """The scores of every sentence. One that wrote nothing has fewer of them, so the columns are known at the end."""

    def __init__(self) -> None:
        self.rows: list[dict[str, float | None]] = []

    def add(self, number: int, row: dict[str, float | None]) -> None:
        self.rows.append(row)

    def print(self) -> None:
        columns = dict.fromkeys(name for row in self.rows for name in row)
        print("\t".join(["sentence", *columns]))
        for number, row in enumerate(self.rows, 1):
            print("\t".join([str(number), *(_shown(row.get(name)) for name in columns)]))


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _corpus_table(found: dict[str, Any]) -> str:
    """Name, value, interval, the baseline's value and the p-value where there are any, signature."""
    rows = [["", "score"]]
    intervals, baseline = found.get("intervals"), found.get("baseline")
    rows[0] += ["95% interval"] if intervals else []
    rows[0] += ["baseline", "p"] if baseline else []
    rows[0].append(f"{found['sentences']} sentences of {found['file']}")
    for name, value in found["scores"].items():
        row = [name, _shown(value)]
        if intervals:
            row.append("{:.3f} to {:.3f}".format(*intervals[name]) if name in intervals else "")
        if baseline:
            p_value = found["p_values"].get(name)
            row += [_shown(baseline["scores"].get(name)), "" if p_value is None else f"{p_value:.4f}"]
        rows.append([*row, found["signatures"][name]])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    lines = []
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=True)),
        ]
        lines.append("  ".join([*cells, row[-1]]))
    return "\n".join(lines)


def _p_values(report: CorpusReport, other: CorpusReport, args: argparse.Namespace, tokenize: str) -> dict[str, float]:
    """Paired tests of every score that both systems have."""
    if difference := _difference(report, other):
        ours, theirs = difference
        raise UserError(f"{args.file} {ours}, {args.baseline} {theirs}: a paired test needs the same")
    found = paired_p_values(report.values, other.values)
    if "BLEU" in report.scores and "BLEU" in other.scores:
        found |= paired_quality(report.texts, other.texts, report.references, tokenize)
    return {name: found[name] for name in report.scores if name in found}


def _difference(report: CorpusReport, other: CorpusReport) -> tuple[str, str] | None:
    """What shows that two logs are not of the same sentences, or not counted alike."""
    if report.sentences != other.sentences:
        return f"has {report.sentences} sentences", str(other.sentences)
    if report.unit != other.unit:
        return f"counts in {report.unit!r}", f"in {other.unit!r}"
    lengths = enumerate(zip(report.source_lengths, other.source_lengths, strict=True), 1)
    # Pieces are those of a system's own vocabulary.
    unlike = [] if report.unit == "piece" else [(n, ours, theirs) for n, (ours, theirs) in lengths if ours != theirs]
    if unlike:
        number, ours, theirs = unlike[0]
        return f"has {ours:g} source units in sentence {number}", f"{theirs:g}"
    for number, (one, another) in enumerate(zip(report.sources, other.sources, strict=True), 1):
        if one and another and report.unit != "piece" and one.casefold() != another.casefold():
            return f"has another source in sentence {number}", "its own"
    if report.references != other.references:
        return "carries its references", f"{'others' if other.references else 'none'} (give --reference)"
    return None
