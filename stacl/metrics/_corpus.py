"""From sentences to a corpus: means, their intervals, and the signature that says how each was made.

`measure` is the one place where a set of traces gets its scores; `stacl score` and `stacl evaluate` both
call it. Latency needs a few numbers a metric, however long the corpus is; only quality and intervals keep
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
from stacl.traces.trace import GOES_ON, SPACE_MARK, Trace

_SIGN = "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"  # Chinese and Japanese
_WITHOUT_SPACES = re.compile(_SIGN)
_RUN_WITHOUT_SPACES = re.compile(f"{_SIGN}{{7}}|{_SIGN}[A-Za-z0-9，。！？、]")  # in cut text such a word is rare
_UNDECIDED = 1000  # sentences without a word of a reference: then the log has none
Aligned = tuple[Trace, tuple[str, ...]]  # a sentence and its references


@dataclass(frozen=True)
class CorpusReport:
    """The scores of a corpus. A score is None where no sentence defines it."""

    scores: dict[str, float | None]
    signatures: dict[str, str]
    sentences: int
    unit: str
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    wordless: int = 0  # the first sentence that has a reference and no words, so that there is no quality; 0: none
    # What each sentence scored (NaN: nothing) and weighs, its source's length, its text and its references: kept for
    # paired tests, if asked for.
    values: dict[str, tuple[array[float], array[float]]] = field(default_factory=dict, repr=False)
    source_lengths: Sequence[float] = field(default=(), repr=False)
    texts: list[str] = field(default_factory=list, repr=False)
    sources: list[str] = field(default_factory=list, repr=False)  # where the log holds them
    references: list[list[str]] = field(default_factory=list, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        found: dict[str, Any] = {"sentences": self.sentences, "unit": self.unit, "scores": self.scores}
        if self.intervals:
            found["intervals"] = {name: list(limits) for name, limits in self.intervals.items()}
        return found | {"signatures": self.signatures}


def reference_length(reference: str, unit: str, split: Callable[[str], list[str]] = str.split) -> int | None:
    """A reference's length in the unit of latency; None where it takes a subword model or a segmenter to know it.

    >>> reference_length("a b c", "word"), reference_length("你好 吗", "char"), reference_length("你好吗", "word")
    (3, 3, None)
    >>> reference_length("我们用的是iPhone 7手机", "word"), reference_length("我们 用 的 是 手机", "word")
    (None, 5)
    """
    if unit == "piece":
        return None
    words = split(reference)
    uncut = len(words) == 1 or any(_RUN_WITHOUT_SPACES.search(word) for word in words)
    if unit in ("word", "ms") and split is str.split and uncut and _WITHOUT_SPACES.search(reference):
        return None  # nobody has said where its words end
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
                 references that the traces carry. AL_ref and LAAL take the length of the first.
    unit         count the target in this unit; as the traces say if None
    weighted     weigh each sentence's latency with its source length, instead of all alike
    tokenize     sacreBLEU's tokenizer: 13a, or zh for Chinese
    samples      bootstrap samples for 95% intervals; 0: none
    comet        a COMET model's name; None: no COMET
    hypotheses   the texts, where the traces hold none or other units than a reader sees
    sources      the source texts for COMET, where the traces hold none
    keep         keep every sentence's values and text in the report
    split        the words of a reference, where they are not what stands between spaces
    on_sentence  called with the number from 0 and the scores of each sentence

    >>> measure([Trace(3, (1, 2, 3)), Trace(3, (3, 3, 3))]).scores["AL"]
    2.0
    """
    means = Means(weighted, keep=keep or samples > 0)
    judged, sentences = _judged(_aligned(traces, references, hypotheses), bool(references))
    if comet and not judged:
        raise UserError("COMET needs references, and there are none; give --reference")
    texts = _Texts(_quality_metrics(tokenize, comet) if judged else [], keep)
    for number, (logged, lines) in enumerate(sentences):
        trace = logged.in_unit(unit) if unit else logged
        if (trace.source_length and not lines) if judged else any(lines):  # an empty line needs none
            has, have = ("a reference", "none") if lines else ("no reference", "one")
            raise UserError(f"sentence {number + 1} has {has} and those before it have {have}; give --reference")
        counted = "char" if trace.counts_characters else trace.unit
        length = reference_length(lines[0] if lines else "", counted, split) if judged else None
        row = means.add(trace, length, bool(on_sentence))
        given = None if hypotheses is None else hypotheses[number]
        # The logged one: counted in characters it has no spaces.
        scores_of_text = texts.add(logged, lines if judged else (), given, bool(on_sentence))
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
    """The texts of a corpus, for the metrics that need them all: nothing is kept where there are none."""

    def __init__(self, metrics: list[QualityMetric], keep: bool) -> None:
        self.metrics, self.keep = metrics, keep
        self.hypotheses: list[str] = []
        self.sources: list[str] = []
        self.references: list[tuple[str, ...]] = []
        self.wordless = 0  # the number of the first sentence whose output should be judged and is only a path
        self.unmarked = 0  # that of the first whose pieces do not show where its words end
        self.marked = False  # some sentence's do: the pieces of another may all be words

    def add(self, trace: Trace, references: tuple[str, ...], given: str | None, want_row: bool) -> Row:
        """Take in one sentence; its scores, if they are wanted."""
        if not self.metrics and not self.keep:
            return {}
        text = trace.text() if given is None else given
        self.hypotheses.append(text)
        if trace.unit == "piece" and given is None:
            self._look_for_marks(trace)
        self.sources.append(" ".join(trace.source))
        # A log that carries references may lack that of an empty line: it is empty then.
        self.references.append(references or ("",) * bool(self.metrics))
        wordless = bool(trace.delays) and not text and given is None
        if wordless and self.metrics:
            self.wordless = self.wordless or len(self.hypotheses)
        if not want_row or wordless:
            return {}
        return {metric.name: metric.sentence(text, self.references[-1]) for metric in self.metrics}

    def _look_for_marks(self, trace: Trace) -> None:
        if any(SPACE_MARK in piece or GOES_ON.search(piece) for piece in trace.target):
            self.marked = True
        elif len(trace.target) > 1:
            self.unmarked = self.unmarked or len(self.hypotheses)

    def columns(self) -> list[list[str]]:
        """The references as sacreBLEU wants them, one list for each translation of the corpus."""
        return [list(column) for column in zip(*self.references, strict=True)]

    def results(self, sources: Sequence[str] | None, samples: int) -> Iterator[tuple[str, Quality]]:
        # A path without words has a latency and no quality: a score of 0 would be a lie.
        if self.wordless:
            return
        if self.metrics and self.unmarked and not self.marked:
            raise UserError(
                f"the pieces of sentence {self.unmarked} do not show where words end, by {SPACE_MARK} or @@: "
                "its text is not known; give --hypothesis"
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


def _judged(sentences: Iterator[Aligned], given: bool) -> tuple[bool, Iterator[Aligned]]:
    """Whether they have references, given or as the first of a log tells; and all of them. An empty line needs none,
    and an empty reference tells nothing: SimulEval's format has it also where there is none.
    """
    first: list[Aligned] = []
    for trace, lines in sentences:
        first.append((trace, lines))
        if given or any(lines) or (trace.source_length and not lines) or len(first) == _UNDECIDED:
            break
    if not first:
        raise UserError("there is nothing to score: no sentence was given")
    return given or any(first[-1][1]), chain(first, sentences)


def _aligned(
    traces: Iterable[Trace],
    references: Sequence[Sequence[str]] | Mapping[str, Sequence[str]] | None,
    hypotheses: Sequence[str] | None,
) -> Iterator[Aligned]:
    """Traces with their reference lines; files of different lengths are not the same text."""
    carried = references is None  # by the traces themselves
    if carried and hypotheses is None:
        yield from ((trace, _carried(trace)) for trace in traces)
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
                        f"{name} has {len(column)} lines, but there are {total} sentences to score: "
                        f"line {alone} has no partner"
                    )
        yield trace, _carried(trace) if carried else tuple(lines[: len(references)])


def _carried(trace: Trace) -> tuple[str, ...]:
    return () if trace.reference is None else (trace.reference,)
