"""Translate a test set under several policies and score it: the numbers of a quality-latency curve."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stacl.decoding.options import Decoding as Search
from stacl.live.translator import Translator
from stacl.metrics import CorpusReport, measure
from stacl.policies.base import Policy
from stacl.support.errors import UserError
from stacl.support.files import sole_writer, write_text_atomically
from stacl.support.version import __version__
from stacl.traces.simulated_speaker import PACE, spoken
from stacl.traces.trace import Trace

BLOCK = 512  # sentences decoded between two writes to the log: what an interruption can cost


@dataclass(frozen=True)
class Decoding:
    """How the sentences are translated."""

    policy: Policy
    beam: int = 1
    ahead: int = 0  # pieces that the beam looks ahead before each is said
    early_end: bool = False
    live: bool = False  # one by one through live sessions, with the clock running
    pace: float = PACE  # of the speaker whom live sessions hear, in seconds a word

    def __post_init__(self) -> None:
        if not 0 < self.pace < math.inf:
            raise UserError(f"a speaker needs some seconds for a word, not {self.pace:g}")
        self.options()

    def options(self) -> dict[str, Any]:
        """What batches and live sessions are told alike."""
        return {"decoding": Search(beam=self.beam, ahead=self.ahead, early_end=self.early_end)}

    def signature(self) -> str:
        parts = [
            f"policy:{self.policy}",
            f"policy-unit:{self.policy.unit}",
            f"beam:{self.beam}" + (f"|ahead:{self.ahead}" if self.ahead else ""),
            f"early-end:{'allowed' if self.early_end or not self.policy.reads_all else 'masked'}",
            f"decoding:live|pace:{self.pace:g}s" if self.live else "decoding:batched",
            f"version:{__version__}",
        ]
        return "|".join(parts)

    def file_name(self) -> str:
        name = f"{self.policy}" + (f"-beam{self.beam}" if self.beam > 1 else "")
        name += f"-ahead{self.ahead}" if self.ahead else ""
        name += ("-early-end" if self.early_end else "") + ("-live" if self.live else "")
        return re.sub(r"[^\w.=-]+", "-", name) + ".jsonl"


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: Mapping[str, Sequence[str]],
    decoding: Decoding,
    *,
    unit: str | None = None,
    samples: int = 0,
    out: Path | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, Any]:
    """Scores and signatures of one policy. With `out`, traces are kept there and an interrupted run goes on."""
    if not sources:
        raise UserError("the source is empty: there is nothing to evaluate")
    for number, line in enumerate(sources, start=1):
        if not translator.source_language.split(line):
            raise UserError(f"line {number} of the source is empty: it has no latency; remove it from all files")
    log = None if out is None else out / decoding.file_name()
    with sole_writer(log, "writing to") if log else contextlib.nullcontext():
        traces = list(_decoded(translator, sources, decoding, log, progress))
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
    return whose(translator, sources, references) | _result(report, decoding, traces)


def whose(translator: Translator, sources: Sequence[str], references: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """What figures that are kept belong to: the weights and the text, by their checksums."""
    text = hashlib.sha256(json.dumps([list(sources), *map(list, references.values())]).encode())
    return {"weights": translator.fingerprint, "text": text.hexdigest()}


def _result(report: CorpusReport, decoding: Decoding, traces: list[Trace]) -> dict[str, Any]:
    found = {"policy": str(decoding.policy)} | report.as_dict()
    found["signatures"] = {"decoding": decoding.signature()} | found["signatures"]
    found["degenerate"] = {
        "empty": sum(not trace.target for trace in traces),
        "loops": sum(loops(trace.target) for trace in traces),
    }
    return found


def loops(words: Sequence[str], times: int = 4) -> bool:
    """Whether the same one to four words come `times` times in a row: a model that has lost the thread.

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
    decoding: Decoding,
    log: Path | None,
    progress: Callable[[int], None],
) -> Iterator[Trace]:
    done = 0
    for trace in _earlier(translator, sources, decoding, log) if log else ():
        done += 1
        yield trace
    progress(done)
    for start in range(done, len(sources), BLOCK):
        block = sources[start : start + BLOCK]

        def count(finished: int, before: int = start) -> None:
            progress(before + finished)

        traces = _translate(translator, block, decoding, count)
        if log is not None:
            _append(log, traces)
        yield from traces


def _translate(
    translator: Translator, lines: Sequence[str], decoding: Decoding, progress: Callable[[int], None]
) -> list[Trace]:
    if not decoding.live:
        return translator.translate_lines(lines, decoding.policy, **decoding.options(), progress=progress)
    traces = []
    for number, line in enumerate(lines, start=1):
        session = translator.stream(decoding.policy, **decoding.options())
        for word in translator.source_language.split(line):
            session.read(word)
        session.close()
        traces.append(spoken(session.trace, decoding.pace))
        progress(number)
    return traces


def _earlier(translator: Translator, sources: Sequence[str], decoding: Decoding, log: Path) -> list[Trace]:
    """Traces of an interrupted evaluation, if it was of the same model, text and decoding; else they are set aside."""
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{log.parent} cannot be made a folder for traces: {error.strerror}") from None
    described = log.with_name(log.name + ".about.json")
    about = {
        "decoding": decoding.signature(),
        "schedule": decoding.policy.outline(),
        "model": translator.fingerprint,
        "sentences": len(sources),
    }
    if _same(described, about):
        traces = _whole_lines(log)[: len(sources)]
        split = translator.source_language.split
        if all(trace.source == tuple(split(line)) for trace, line in zip(traces, sources, strict=False)):
            # What an interruption cut off goes, so that the next line does not begin in the middle of one.
            write_text_atomically(log, "".join(trace.to_json() + "\n" for trace in traces))
            return traces
    set_aside(log)
    write_text_atomically(log, "")
    write_text_atomically(described, json.dumps(about))
    return []


def set_aside(log: Path) -> None:
    """What took hours is not emptied because another model or text came under its name."""
    if not log.is_file() or not log.stat().st_size:
        return
    number = next(number for number in itertools.count(1) if not log.with_name(f"{log.name}.{number}").exists())
    log.rename(log.with_name(f"{log.name}.{number}"))


def _same(described: Path, about: dict[str, Any]) -> bool:
    try:
        return bool(json.loads(described.read_text(encoding="utf-8")) == about)
    except (OSError, ValueError):
        return False


def _whole_lines(log: Path) -> list[Trace]:
    """The sentences before the first line that is not whole."""
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
        raise UserError(f"{log} could not be saved: {error.strerror}") from None
