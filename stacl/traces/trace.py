"""The record of one sentence: which source units were read, which target units were written, and when.

Metrics, plots and logs depend only on a Trace, not on models or policies. It is validated when it is created, so its
users need no checks of their own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stacl.support import validation
from stacl.support.errors import UserError, suggest
from stacl.traces.checks import clock_problem, length_problem, number_problem, path_problem

UNITS = ("word", "piece", "char", "ms")
SPACE_MARK = "▁"  # SentencePiece's mark for a space
CONTINUATION_MARK = re.compile(r"@@(?: |$)")  # subword-nmt's mark: the word continues in the next piece
_FIRST_CJK = "\u2e80"  # scripts without spaces begin here


@dataclass(frozen=True)
class Revision:
    """One change of the displayed output: after `read` source units, `keep` target units stay and `words` follow.

    An append-only system keeps all units each time. A re-translating system may keep fewer.
    """

    read: int
    keep: int
    words: tuple[str, ...]
    time: float | None = None  # seconds from the start of the sentence, if known


@dataclass(frozen=True)
class Trace:
    """One sentence's read/write path.

    `delays[t-1]` is g(t): how many source units had been read when target unit t was decided, clipped to the
    number of source units (the end of the source is not counted).

    >>> Trace(source_length=3, delays=(1, 2, 3)).actions()
    'RWRWRW'
    """

    source_length: int  # |x| in units
    delays: tuple[int, ...]  # g(1) .. g(|y|)
    source: tuple[str, ...] = ()  # the source units, if known
    target: tuple[str, ...] = ()  # the target units, if known
    unit: str = "word"  # word, piece or char (of the target); ms for the log of a speech system
    read_times: tuple[float, ...] = ()  # when each source unit arrived, in seconds from the start of the sentence
    write_times: tuple[float, ...] = ()  # when each target unit was shown, in the same seconds
    policy: str = ""
    compute_seconds: float = 0.0  # computing time, without waiting for the speaker
    revisions: tuple[Revision, ...] = ()  # every change of the output, for a re-translating system
    reference: str | None = None  # a reference translation, if the log has one; it may be empty
    characters: bool = False  # for unit ms: the target is counted in characters

    def __post_init__(self) -> None:
        problem = number_problem(self) or path_problem(self.delays, self.source_length)
        # A bare path, as read from an rw log, needs no further checks. This keeps large logs fast.
        if problem is None and (self.source or self.target or self.read_times or self.write_times):
            problem = length_problem(self)
        if problem is None and (self.read_times or self.write_times or self.compute_seconds):
            problem = clock_problem(self)
        if problem is None and self.revisions:
            problem = _revision_problem(self)
        if problem is None and self.unit not in UNITS:
            problem = f"unknown unit {self.unit!r}{suggest(self.unit, UNITS)}"
        if problem is not None:
            raise UserError(problem)

    @classmethod
    def from_revisions(
        cls, source: Sequence[str], revisions: Sequence[Revision], unit: str = "word", policy: str = ""
    ) -> Trace:
        """The trace of a re-translating system: the delay of a word is that of its last change.

        >>> again = [Revision(1, 0, ("a",)), Revision(2, 1, ("b", "c")), Revision(3, 2, ("d",))]
        >>> trace = Trace.from_revisions(["x", "y", "z"], again)
        >>> trace.target, trace.delays, trace.erased()
        (('a', 'b', 'd'), (1, 2, 3), 1)
        """
        shown = _shown(revisions)
        return cls(
            source_length=len(source),
            delays=tuple(change.read for _, change in shown),
            source=tuple(source),
            target=tuple(word for word, _ in shown),
            unit=unit,
            write_times=_times(shown),
            policy=policy,
            revisions=tuple(revisions),
        )

    def actions(self) -> str:
        """The path as a string of R and W."""
        path, read = [], 0
        for delay in self.delays:
            path.append("R" * (delay - read) + "W")
            read = delay
        return "".join(path) + "R" * (self.source_length - read)

    def cutoff(self) -> int | None:
        """The first target position (from 1) that has seen the whole source, or None if none has."""
        return next((t for t, delay in enumerate(self.delays, 1) if delay >= self.source_length), None)

    def text(self) -> str:
        """The target as plain text: words joined with spaces, pieces and characters without.

        >>> Trace(2, (1, 2, 2), target=("Hal", "lo▁", "Welt▁"), unit="piece").text()
        'Hallo Welt'
        >>> Trace(2, (1, 2, 2), target=("Hal@@", "lo", "Welt"), unit="piece").text()
        'Hallo Welt'
        """
        if self.unit == "piece":
            joined = "".join(self.target)
            if SPACE_MARK in joined:
                return joined.replace(SPACE_MARK, " ").strip()
            return CONTINUATION_MARK.sub("", " ".join(self.target))
        return ("" if self.counts_characters else " ").join(self.target)

    @property
    def counts_characters(self) -> bool:
        """Whether the target is counted in characters. For a speech log without that field, it is detected."""
        if self.unit != "ms" or self.characters:
            return self.unit in ("char", "ms")
        single = all(len(word.strip()) == 1 for word in self.target)
        return single and any(word >= _FIRST_CJK for word in self.target)

    def erased(self) -> int:
        """The number of shown target units that were removed later."""
        length, erased = 0, 0
        for change in self.revisions:
            erased += length - change.keep
            length = change.keep + len(change.words)
        return erased

    def in_chars(self) -> Trace:
        """The same path counted in target characters. Each inherits the delay and the time of its word.

        The source keeps its unit, as in SimulEval's `--eval-latency-unit char`.

        >>> Trace(3, (1, 3), target=("你好", "吗")).in_chars().delays
        (1, 1, 3)
        """
        if self.delays and not self.target:
            raise UserError("to count characters the trace must hold its target words, but it has only the path")
        words = [CONTINUATION_MARK.sub("", word) for word in self.target] if self.unit == "piece" else self.target
        clean = [word.replace(SPACE_MARK, "").replace(" ", "") for word in words]
        owner = [t for t, word in enumerate(clean) for _ in word]
        return replace(
            self,
            delays=tuple(self.delays[t] for t in owner),
            target=tuple("".join(clean)),
            write_times=tuple(self.write_times[t] for t in owner) if self.write_times else (),
            unit="ms" if self.unit == "ms" else "char",
            characters=self.unit == "ms",
            # `Revision.keep` counts words, so erasure would be wrong in characters.
            revisions=(),
        )

    def in_unit(self, unit: str) -> Trace:
        """The same path in another unit. Only words and pieces can be converted, to characters."""
        if unit == self.unit:
            return self
        if unit == "char":
            return self.in_chars()
        reason = " without its subword model" if "piece" in (unit, self.unit) else ""
        raise UserError(f"the trace has unit {self.unit!r} and cannot be counted in {unit!r}{reason}")

    def to_json(self) -> str:
        """One line of JSON, without empty optional fields.

        >>> Trace(2, (1, 2), target=("a", "b")).to_json()
        '{"source_length": 2, "delays": [1, 2], "target": ["a", "b"], "unit": "word"}'
        """
        values = {name: getattr(self, name) for name in _FIELDS}
        values["revisions"] = [
            {"read": r.read, "keep": r.keep, "words": r.words} | ({} if r.time is None else {"time": r.time})
            for r in self.revisions
        ]
        kept = {name: value for name, value in values.items() if value or name in ("source_length", "delays")}
        if self.reference is not None:  # an empty reference differs from none
            kept["reference"] = self.reference
        return json.dumps(kept, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str | bytes) -> Trace:
        """Parse a line of JSON. The caller adds file and line to error messages."""
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"not valid JSON: {error}") from None
        if not isinstance(found, dict):
            raise UserError(f"expected a JSON object with source_length and delays, found {line[:40]!r}")
        if not _FIELDS.keys() >= found.keys():
            wrong = min(found.keys() - _FIELDS.keys())
            raise UserError(f"unknown field {wrong!r} in a trace{suggest(wrong, _FIELDS)}")
        for name in ("source_length", "delays"):
            if name not in found:
                raise UserError(f"the field {name!r} is missing from the trace")
        values = {name: _FIELDS[name](name, value) for name, value in found.items()}
        if values.get("revisions"):
            shown = _shown(values["revisions"])
            values["write_times"] = values.get("write_times") or _times(shown)
            values["target"] = values.get("target") or tuple(word for word, _ in shown)
        return cls(**values)


def _shown(revisions: Sequence[Revision]) -> list[tuple[str, Revision]]:
    """The words of the final output, each with its last change."""
    shown: list[tuple[str, Revision]] = []
    for change in revisions:
        shown[change.keep :] = [(word, change) for word in change.words]
    return shown


def _times(shown: list[tuple[str, Revision]]) -> tuple[float, ...]:
    """When each word was last changed; empty unless all times are known."""
    times = [change.time for _, change in shown if change.time is not None]
    return tuple(times) if len(times) == len(shown) else ()


def _revision_problem(trace: Trace) -> str | None:
    length = read = 0
    for number, change in enumerate(trace.revisions, 1):
        if not 0 <= change.keep <= length:
            return f"revision {number} keeps {change.keep} units, but only {length} are shown"
        if not read <= change.read <= trace.source_length:
            limits = f"{read} and {trace.source_length}"
            return f"revision {number} has read {change.read}; it must be between {limits}"
        read, length = change.read, change.keep + len(change.words)
    shown = _shown(trace.revisions)
    if len(shown) != len(trace.delays):
        return f"the revisions end with {len(shown)} target units, but there are {len(trace.delays)} delays"
    if trace.target and tuple(word for word, _ in shown) != trace.target:
        return "the revisions do not end with the target; their final words must be equal to it"
    for number, ((_, last), delay) in enumerate(zip(shown, trace.delays, strict=True), 1):
        if delay != last.read:
            return (
                f"target unit {number} has the delay {delay}, but its last change came after {last.read} source units"
            )
    return None


def _revisions(name: str, value: Any) -> tuple[Revision, ...]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise UserError(f"{name} must be a list of objects with read, keep and words")
    found = []
    for item in value:
        if not {"read", "keep", "words"} <= item.keys() <= {"read", "keep", "words", "time"}:
            raise UserError(f"a revision has the fields read, keep, words and optionally time, not {', '.join(item)}")
        time = validation.number("time", item["time"]) if "time" in item else None
        words = validation.strings("words", item["words"])
        found.append(
            Revision(validation.whole("read", item["read"]), validation.whole("keep", item["keep"]), words, time)
        )
    return tuple(found)


_FIELDS: dict[str, Callable[[str, Any], Any]] = {
    "source_length": validation.whole,
    "delays": validation.wholes,
    "source": validation.strings,
    "target": validation.strings,
    "unit": validation.string,
    "read_times": validation.numbers,
    "write_times": validation.numbers,
    "policy": validation.string,
    "compute_seconds": validation.number,
    "revisions": _revisions,
    "reference": validation.string,
    "characters": validation.boolean,
}
