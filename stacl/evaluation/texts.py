"""Adds references, hypotheses and sources that the user gives to the traces of a log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

from stacl.metrics import reference_length
from stacl.support.errors import UserError
from stacl.traces import logs
from stacl.traces.trace import Trace

EXPORTS = {".rw": "rw", ".txt": "rw", ".jsonl": "trace", ".json": "trace", ".log": "simuleval"}


def exported(
    traces: Iterable[Trace],
    path: str,
    references: Sequence[str] = (),
    hypotheses: Sequence[str] = (),
    sources: Sequence[str] = (),
) -> Iterator[Trace]:
    """Yield the traces, completed with the given texts, and also write them to a file."""
    format = EXPORTS.get(Path(path).suffix)
    if format is None:
        raise UserError(f"--export {path}: the file ending must be one of {', '.join(EXPORTS)}")
    given = zip_longest(traces, references, hypotheses, sources)
    completed = (_completed(trace, *texts) for trace, *texts in given if trace is not None)
    yield from logs.passed_on(completed, path, format)


def _completed(trace: Trace, reference: str | None, hypothesis: str | None, source: str | None) -> Trace:
    """Return the trace with words from the texts, if it has none and their number matches."""
    target_words, source_words = tuple((hypothesis or "").split()), tuple((source or "").split())
    use_target = not trace.target and trace.unit == "word" and len(target_words) == len(trace.delays)
    use_source = not trace.source and trace.unit == "word" and len(source_words) == trace.source_length
    return replace(
        trace,
        reference=trace.reference if reference is None else reference,
        target=target_words if use_target else trace.target,
        source=source_words if use_source else trace.source,
    )


def compared(
    traces: Iterable[Trace], hypotheses: Sequence[str], path: str, warn: Callable[[str], None]
) -> Iterator[Trace]:
    """Yield the traces unchanged, and warn at the end if hypotheses have other lengths than their traces.

    Latency is computed from the log and quality from the hypotheses. Both should be from the same run.
    """
    different: list[tuple[int, int, int]] = []
    for number, (trace, text) in enumerate(zip_longest(traces, hypotheses), 1):
        if trace is None:
            break
        length = None if text is None or trace.unit == "ms" else reference_length(text, trace.unit)
        if length is not None and length != len(trace.delays):
            different.append((number, len(trace.delays), length))
        yield trace
    if different:
        number, logged, given = different[0]
        more = f" ({len(different) - 1} more sentences differ)" if len(different) > 1 else ""
        warn(
            f"sentence {number} of {path} writes {logged} units, but its hypothesis has {given}{more}; "
            "check that both are from the same run"
        )
