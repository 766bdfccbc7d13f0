"""Translate a test set under one condition and score it: one point of a quality-latency curve."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stacl.decoding.options import GREEDY, Decoding
from stacl.evaluation.results import set_aside
from stacl.live.translator import Translator
from stacl.metrics import CorpusReport, measure
from stacl.policies.base import Policy
from stacl.support.errors import UserError
from stacl.support.files import sole_writer, write_text_atomically
from stacl.support.version import __version__
from stacl.traces.simulated_speaker import check_pace, spoken
from stacl.traces.trace import Trace

BLOCK = 512  # sentences between two writes to the log: an interruption loses at most these


@dataclass(frozen=True)
class Condition:
    """How the sentences of a test set are translated."""

    policy: Policy
    decoding: Decoding = GREEDY
    pace: float | None = None  # seconds per word of a simulated speaker, in live sessions; None: in batches

    def __post_init__(self) -> None:
        if self.pace is not None:
            check_pace(self.pace)

    def signature(self) -> str:
        early_end = self.decoding.early_end or not self.policy.reads_all
        parts = [
            f"policy:{self.policy}",
            f"policy-unit:{self.policy.unit}",
            f"beam:{self.decoding.beam}",
            f"ahead:{self.decoding.ahead}" if self.decoding.ahead else "",
            f"early-end:{'allowed' if early_end else 'masked'}",
            "" if self.decoding.constraints is None else f"constraints:{','.join(self.decoding.constraints) or 'none'}",
            "decoding:batched" if self.pace is None else f"decoding:live|pace:{self.pace:g}s",
            f"version:{__version__}",
        ]
        return "|".join(filter(None, parts))

    def file_name(self) -> str:
        """Return the file name of the trace log of this condition."""
        decoding = self.decoding
        name = f"{self.policy}" + (f"-beam{decoding.beam}" if decoding.beam > 1 else "")
        name += f"-ahead{decoding.ahead}" if decoding.ahead else ""
        name += "-early-end" if decoding.early_end else ""
        name += "" if decoding.constraints is None else f"-constraints-{'-'.join(decoding.constraints)}"
        name += "" if self.pace is None else "-live"
        return re.sub(r"[^\w.=-]+", "-", name) + ".jsonl"


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: Mapping[str, Sequence[str]],
    condition: Condition,
    *,
    unit: str | None = None,
    samples: int = 0,
    out: Path | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, Any]:
    """Return the scores and signatures under one condition.

    With `out`, traces are written to that folder, and an interrupted evaluation continues from them.
    """
    if not sources:
        raise UserError("the source is empty; expected at least one sentence")
    for number, line in enumerate(sources, start=1):
        if not translator.source_language.split(line):
            raise UserError(f"line {number} of the source is empty and has no latency; remove it from all files")
    log = None if out is None else out / condition.file_name()
    with sole_writer(log, "writing to") if log else contextlib.nullcontext():
        traces = list(_decoded(translator, sources, condition, log, progress))
    target = translator.target_language
    report = measure(
        traces,
        references,
        unit=unit or target.latency_unit,
        tokenize=target.tokenizer,
        samples=samples,
        hypotheses=[target.join(trace.target) for trace in traces],
        sources=sources,
        split=str.split if target.splits_at_spaces else target.split,
    )
    return provenance(translator, sources, references) | _result(report, condition, traces)


def provenance(
    translator: Translator, sources: Sequence[str], references: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return checksums of the weights and of the text of a result."""
    text = hashlib.sha256(json.dumps([list(sources), *map(list, references.values())]).encode())
    return {"weights": translator.fingerprint, "text": text.hexdigest()}


def _result(report: CorpusReport, condition: Condition, traces: list[Trace]) -> dict[str, Any]:
    found = {"policy": str(condition.policy)} | report.as_dict()
    found["signatures"] = {"decoding": condition.signature()} | found["signatures"]
    found["degenerate"] = {
        "empty": sum(not trace.target for trace in traces),
        "loops": sum(loops(trace.target) for trace in traces),
    }
    return found


def loops(words: Sequence[str], times: int = 4) -> bool:
    """Whether one to four words are repeated `times` times in a row: degenerate output.

    >>> loops("the man the man the man the man".split()), loops("a very very good day".split())
    (True, False)
    """
    for size in range(1, 5):
        for start in range(len(words) - size * times + 1):
            block = words[start : start + size]
            if all(words[start + size * n : start + size * (n + 1)] == block for n in range(1, times)):
                return True
    return False


def _decoded(
    translator: Translator,
    sources: Sequence[str],
    condition: Condition,
    log: Path | None,
    progress: Callable[[int], None],
) -> Iterator[Trace]:
    done = 0
    for trace in _resumed(translator, sources, condition, log) if log else ():
        done += 1
        yield trace
    progress(done)
    for start in range(done, len(sources), BLOCK):
        block = sources[start : start + BLOCK]

        def count(finished: int, before: int = start) -> None:
            progress(before + finished)

        traces = _translate(translator, block, condition, count)
        if log is not None:
            _append(log, traces)
        yield from traces


def _translate(
    translator: Translator, lines: Sequence[str], condition: Condition, progress: Callable[[int], None]
) -> list[Trace]:
    policy, decoding = condition.policy, condition.decoding
    if condition.pace is None:
        return translator.translate_lines(lines, policy, decoding=decoding, progress=progress)
    traces = []
    for number, line in enumerate(lines, start=1):
        session = translator.stream(policy, decoding=decoding)
        session.feed(line)
        session.close()
        traces.append(spoken(session.trace, condition.pace))
        progress(number)
    return traces


def _resumed(translator: Translator, sources: Sequence[str], condition: Condition, log: Path) -> list[Trace]:
    """Return the traces of an interrupted evaluation of the same model, text and condition. Rename other traces."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot create the folder {log.parent} for traces: {error.strerror}") from None
    description = log.with_name(log.name + ".about.json")
    about = {
        "decoding": condition.signature(),
        "schedule": condition.policy.fingerprint(),
        "model": translator.fingerprint,
        "sentences": len(sources),
    }
    if _same(description, about):
        traces = _complete_lines(log)[: len(sources)]
        split = translator.source_language.split
        if all(trace.source == tuple(split(line)) for trace, line in zip(traces, sources, strict=False)):
            # Drop a line that an interruption has cut off.
            write_text_atomically(log, "".join(trace.to_json() + "\n" for trace in traces))
            return traces
    set_aside(log)
    write_text_atomically(log, "")
    write_text_atomically(description, json.dumps(about))
    return []


def _same(description: Path, about: dict[str, Any]) -> bool:
    try:
        return bool(json.loads(description.read_text(encoding="utf-8")) == about)
    except (OSError, ValueError):
        return False


def _complete_lines(log: Path) -> list[Trace]:
    """Return the traces before the first incomplete line."""
    traces = []
    for line in log.read_bytes().splitlines(keepends=True) if log.is_file() else ():
        try:
            traces.append(Trace.from_json(line))
        except UserError:
            break
        if not line.endswith(b"\n"):
            break
    return traces


def _append(log: Path, traces: Sequence[Trace]) -> None:
    try:
        with log.open("a", encoding="utf-8") as file:
            file.writelines(trace.to_json() + "\n" for trace in traces)
    except OSError as error:
        raise UserError(f"cannot write {log}: {error.strerror}") from None
