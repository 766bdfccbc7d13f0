"""Corpus scores: means, their intervals, and a signature for each.

`stacl score` and `stacl evaluate` both call `measure`. Latency needs constant memory; only quality and intervals keep
the sentences.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, zip_longest
from typing import Any

from stacl.metrics._means import Means, Row
from stacl.metrics.base import Metric, Quality, QualityMetric
from stacl.support import plugins
from stacl.support.errors import UserError
from stacl.traces.trace import CONTINUATION_MARK, SPACE_MARK, Trace

_CJK = "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"  # Chinese and Japanese
_HAS_CJK = re.compile(_CJK)
_UNSEGMENTED = re.compile(f"{_CJK}{{7}}|{_CJK}[A-Za-z0-9，。！？、]")  # rare in segmented text
_MAX_UNDECIDED = 1000  # after so many empty references the log counts as one without references
Aligned = tuple[Trace, tuple[str, ...]]  # a sentence and its references


@dataclass(frozen=True)
class CorpusReport:
    """The scores of a corpus. A score is None where no sentence defines it."""

    scores: dict[str, float | None]
    signatures: dict[str, str]
    sentences: int
    unit: str
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    wordless: int = 0  # the first sentence with a reference but without words, which prevents quality scores; 0: none
    # With `keep`, for paired tests: value (NaN: undefined) and weight of each sentence, its source length, text and
    # references.
    values: dict[str, tuple[array[float], array[float]]] = field(default_factory=dict, repr=False)
    source_lengths: Sequence[float] = field(default=(), repr=False)
    texts: list[str] = field(default_factory=list, repr=False)
    sources: list[str] = field(default_factory=list, repr=False)  # empty where the log has none
    references: list[list[str]] = field(default_factory=list, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """The content of `--json`."""
        found: dict[str, Any] = {"sentences": self.sentences, "unit": self.unit, "scores": self.scores}
        if self.intervals:
            found["intervals"] = {name: list(limits) for name, limits in self.intervals.items()}
        return found | {"signatures": self.signatures}


def reference_length(reference: str, unit: str, split: Callable[[str], list[str]] = str.split) -> int | None:
    """The length of a reference in the unit of latency; None if it takes a subword model or a segmenter.

    >>> reference_length("a b c", "word"), reference_length("你好 吗", "char"), reference_length("你好吗", "word")
    (3, 3, None)
    >>> reference_length("我们用的是iPhone 7手机", "word"), reference_length("我们 用 的 是 手机", "word")
    (None, 5)
    """
    if unit == "piece":
        return None
    words = split(reference)
    unsegmented = len(words) == 1 or any(_UNSEGMENTED.search(word) for word in words)
    if unit in ("word", "ms") and split is str.split and unsegmented and _HAS_CJK.search(reference):
        return None  # the word boundaries are unknown
    return sum(map(len, words)) if unit == "char" else len(words)


def measure(
    traces: Iterable[Trace],
    references: Sequence[Sequence[str]] | Mapping[str, Sequence[str]] | None = None,
    *,
    unit: str | None = None,
    weighted: bool = False,
    tokenize: str = "13a",
    samples: int = 0,
    comet: str | None = None,
    hypotheses: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    keep: bool = False,
    split: Callable[[str], list[str]] = str.split,
    on_sentence: Callable[[int, Row], None] | None = None,
) -> CorpusReport:
    """The scores of a corpus, with their signatures.

    references   one list of lines for each reference translation, or such lists by file name; if None, the
                 references in the traces. AL_ref and LAAL use the length of the first.
    unit         count the target in this unit; if None, the unit of the traces
    weighted     weight the latency of each sentence by its source length
    tokenize     sacreBLEU's tokenizer: 13a, or zh for Chinese
    samples      bootstrap samples for 95% intervals; 0: no intervals
    comet        name of a COMET model; None: no COMET
    hypotheses   the output texts, if they differ from the words in the traces or the traces hold none
    sources      the source texts for COMET, if the traces hold none
    keep         keep the values and the text of every sentence in the report
    split        splits a reference into words, if spaces do not separate them
    on_sentence  called with the index (from 0) and the scores of each sentence

    >>> measure([Trace(3, (1, 2, 3)), Trace(3, (3, 3, 3))]).scores["AL"]
    2.0
    """
    means = Means(weighted, keep=keep or samples > 0)
    referenced, sentences = _have_references(_aligned(traces, references, hypotheses), bool(references))
    if comet and not referenced:
        raise UserError("COMET needs references, but there are none; give --reference")
    texts = _Texts(_quality_metrics(tokenize, comet) if referenced else [], keep)
    for number, (logged, lines) in enumerate(sentences):
        trace = logged.in_unit(unit) if unit else logged
        if (trace.source_length and not lines) if referenced else any(lines):  # an empty line needs no reference
            has, have = ("a reference", "none") if lines else ("no reference", "one")
            raise UserError(f"sentence {number + 1} has {has}, but those before it have {have}; give --reference")
        counted = "char" if trace.counts_characters else trace.unit
        length = reference_length(lines[0] if lines else "", counted, split) if referenced else None
        row = means.add(trace, length, bool(on_sentence))
        given = None if hypotheses is None else hypotheses[number]
        # The logged trace: the one in characters has no spaces.
        scores_of_text = texts.add(logged, lines if referenced else (), given, bool(on_sentence))
        if on_sentence:
            on_sentence(number, row | scores_of_text)
    scores, signatures, intervals = means.results(samples)
    for name, result in texts.results(sources, samples):
        scores[name], signatures[name] = result.score, result.signature
        if result.interval is not None:
            intervals[name] = result.interval
    report = CorpusReport(scores, signatures, means.sentences, means.unit, intervals, texts.wordless)
    return _with_sentences(report, means, texts) if keep else report


def _with_sentences(report: CorpusReport, means: Means, texts: _Texts) -> CorpusReport:
    return replace(
        report,
        values=means.kept(),
        source_lengths=means.source_lengths,
        texts=texts.hypotheses,
        sources=texts.sources,
        references=texts.columns(),
    )


class _Texts:
    """Collects the texts of a corpus for the quality metrics. Without metrics and `keep` it stores nothing."""

    def __init__(self, metrics: list[QualityMetric], keep: bool) -> None:
        self.metrics, self.keep = metrics, keep
        self.hypotheses: list[str] = []
        self.sources: list[str] = []
        self.references: list[tuple[str, ...]] = []
        self.wordless = 0  # number of the first sentence to score that has no words, only a path
        self.unmarked = 0  # number of the first sentence whose pieces have no word boundary marks
        self.marked = False  # some sentence has marks; then pieces without marks are whole words

    def add(self, trace: Trace, references: tuple[str, ...], given: str | None, want_row: bool) -> Row:
        """Add one sentence. Returns its scores if `want_row`."""
        if not self.metrics and not self.keep:
            return {}
        text = trace.text() if given is None else given
        self.hypotheses.append(text)
        if trace.unit == "piece" and given is None:
            self._look_for_marks(trace)
        self.sources.append(" ".join(trace.source))
        # An empty line of a log may lack its reference, which counts as empty then.
        self.references.append(references or ("",) * bool(self.metrics))
        wordless = bool(trace.delays) and not text and given is None
        if wordless and self.metrics:
            self.wordless = self.wordless or len(self.hypotheses)
        if not want_row or wordless:
            return {}
        return {metric.name: metric.sentence(text, self.references[-1]) for metric in self.metrics}

    def _look_for_marks(self, trace: Trace) -> None:
        if any(SPACE_MARK in piece or CONTINUATION_MARK.search(piece) for piece in trace.target):
            self.marked = True
        elif len(trace.target) > 1:
            self.unmarked = self.unmarked or len(self.hypotheses)

    def columns(self) -> list[list[str]]:
        """The references as sacreBLEU expects them: one list for each translation of the corpus."""
        return [list(column) for column in zip(*self.references, strict=True)]

    def results(self, sources: Sequence[str] | None, samples: int) -> Iterator[tuple[str, Quality]]:
        # A path without words has latency but no quality: a score of 0 would be wrong.
        if self.wordless:
            return
        if self.metrics and self.unmarked and not self.marked:
            raise UserError(
                f"the pieces of sentence {self.unmarked} have no word boundary marks ({SPACE_MARK} or @@), "
                "so its text is unknown; give --hypothesis"
            )
        for metric in self.metrics:
            source = sources or (self.sources if all(self.sources) else ())
            yield metric.name, metric.corpus(self.hypotheses, self.columns(), source, samples)


def _quality_metrics(tokenize: str, comet: str | None) -> list[QualityMetric]:
    found: list[QualityMetric] = []
    options: dict[str, dict[str, str]] = {"BLEU": {"tokenize": tokenize}, "COMET": {"model": comet or ""}}
    for name in plugins.names("metrics"):
        kind: Any = plugins.find("metrics", name, Metric)
        if issubclass(kind, QualityMetric) and (kind.default or (comet and kind.name == "COMET")):
            found.append(kind(**options.get(kind.name, {})))
    return found


def _have_references(sentences: Iterator[Aligned], given: bool) -> tuple[bool, Iterator[Aligned]]:
    """Whether the sentences have references, and all sentences again.

    The first sentence of a log that can decide it decides. An empty line needs no reference. An empty reference decides
    nothing, because SimulEval's format also writes it where there is none.
    """
    first: list[Aligned] = []
    for trace, lines in sentences:
        first.append((trace, lines))
        if given or any(lines) or (trace.source_length and not lines) or len(first) == _MAX_UNDECIDED:
            break
    if not first:
        raise UserError("there is nothing to score: the input has no sentence")
    return given or any(first[-1][1]), chain(first, sentences)


def _aligned(
    traces: Iterable[Trace],
    references: Sequence[Sequence[str]] | Mapping[str, Sequence[str]] | None,
    hypotheses: Sequence[str] | None,
) -> Iterator[Aligned]:
    """Pair traces with their reference lines. Different numbers of lines are an error."""
    in_traces = references is None
    if in_traces and hypotheses is None:
        yield from ((trace, _reference_of(trace)) for trace in traces)
        return
    if not isinstance(references, Mapping):
        references = {f"reference {number}": lines for number, lines in enumerate(references or (), 1)}
    columns = [*references.items()] + ([] if hypotheses is None else [("the hypotheses", hypotheses)])
    rows: Iterator[Any] = zip_longest(traces, *(lines for _, lines in columns))
    for number, (trace, *lines) in enumerate(rows):
        if trace is None or None in lines:
            total = number if trace is None else number + 1 + sum(row[0] is not None for row in rows)
            for name, column in columns:
                if len(column) != total:
                    alone = min(len(column), total) + 1
                    raise UserError(
                        f"{name} has {len(column)} lines, but there are {total} sentences to score; "
                        f"line {alone} is the first without a partner"
                    )
        yield trace, _reference_of(trace) if in_traces else tuple(lines[: len(references)])


def _reference_of(trace: Trace) -> tuple[str, ...]:
    return () if trace.reference is None else (trace.reference,)
