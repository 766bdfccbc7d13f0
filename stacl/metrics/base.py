"""Base classes of metrics. A latency metric is a pure function of numbers; a quality metric compares texts.

Each file in this folder holds one metric: a function with its formula, and a class that declares the reported names,
the target length used and the inputs needed. `docs/metrics.md` explains each metric.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, NamedTuple

import numpy as np

from stacl.metrics._batch import PathBatch
from stacl.support import plugins
from stacl.traces.trace import Trace


class SentenceTiming(NamedTuple):
    """The numbers of one sentence that latency metrics use. Times are in milliseconds from its start."""

    delays: Sequence[float]  # g(1) .. g(|y|)
    source_length: float  # |x|
    reference_length: int | None = None
    write_ms: Sequence[float] = ()  # when each target unit was shown
    read_ms: Sequence[float] = ()  # when each source unit arrived
    source_ms: float = 0.0  # duration of the source; 0 if unknown
    compute_ms: float = 0.0  # computing time; 0 if unknown
    erased: int | None = None  # removed target units; None if the system logs no revisions

    @classmethod
    def of(cls, trace: Trace, reference_length: int | None = None) -> SentenceTiming:
        if not (trace.write_times or trace.compute_seconds or trace.revisions):
            return cls(trace.delays, trace.source_length, reference_length)
        read_ms = [1000 * time for time in trace.read_times]
        return cls(
            trace.delays,
            trace.source_length,
            reference_length,
            write_ms=[1000 * time for time in trace.write_times],
            read_ms=read_ms,
            source_ms=read_ms[-1] if read_ms else trace.source_length if trace.unit == "ms" else 0.0,
            compute_ms=1000 * trace.compute_seconds,
            erased=trace.erased() if trace.revisions else None,
        )

    def available(self) -> tuple[str, ...]:
        """The values of `Score.needs` that this sentence satisfies."""
        timed = self.write_ms or self.compute_ms
        if self.reference_length is None and not timed and self.erased is None:
            return ("",)
        return (
            "",
            "reference" if self.reference_length is not None else "",
            "clock" if timed else "",
            "reference and clock" if timed and self.reference_length is not None else "",
            "revisions" if self.erased is not None else "",
        )


@dataclass(frozen=True)
class Score:
    """One reported number: its name, how it is computed from a sentence, and what its signature states."""

    name: str
    of: Callable[[SentenceTiming], float | None]  # None: undefined for this sentence
    length: str = "none"  # whose length is Y: hypothesis, reference, longer (of the two) or none
    needs: str = ""  # reference, clock, reference and clock, or revisions; without them it is not reported
    # Weight of a sentence in the mean. If it is the denominator of the score, the mean is a ratio of sums.
    weight: Callable[[SentenceTiming], float] | None = None
    # The vectorised form of `of`; without it sentences are scored one by one.
    batch: Callable[[PathBatch], np.ndarray] | None = None
    words_only: bool = False  # meaningless for delays in milliseconds (speech systems)


class Metric(ABC):
    """The base class of all metrics in this folder."""

    name: ClassVar[str]


class LatencyMetric(Metric):
    """Scores that are computed per sentence and averaged over the corpus."""

    @abstractmethod
    def scores(self) -> list[Score]:
        """The reported numbers."""


class PathMetric(LatencyMetric):
    """A latency metric that is a pure function of delays, source length and target length."""

    length: ClassVar[str] = "hypothesis"
    also_reference: ClassVar[bool] = False  # also report NAME_ref, with the reference length
    also_clock: ClassVar[bool] = True  # also report NAME_CA: the same function of milliseconds
    words_only: ClassVar[bool] = False

    @staticmethod
    @abstractmethod
    def compute(delays: Sequence[float], source_length: float, target_length: float) -> float | None:
        """The metric; None where it is undefined."""

    @staticmethod
    def batch(batch: PathBatch, target_lengths: np.ndarray) -> np.ndarray:
        """The vectorised form of `compute`, NaN where it is undefined. Optional, for speed."""
        raise NotImplementedError

    def on_the_clock(self, sentence: SentenceTiming, target_length: float) -> float | None:
        """The metric in wall-clock time: from when each unit was shown, instead of its delay in units."""
        if not sentence.write_ms or not sentence.source_ms:
            return None
        return self.compute(sentence.write_ms, sentence.source_ms, target_length)

    def scores(self) -> list[Score]:
        compute, longer = self.compute, self.length == "longer"

        def of_hypothesis(sentence: SentenceTiming) -> float | None:
            delays = sentence.delays
            return compute(delays, sentence.source_length, len(delays))

        def of_longer(sentence: SentenceTiming) -> float | None:
            length = max(len(sentence.delays), sentence.reference_length or 0)
            return compute(sentence.delays, sentence.source_length, length)

        def by_reference(sentence: SentenceTiming) -> float | None:
            return compute(sentence.delays, sentence.source_length, sentence.reference_length or 0)

        def timed(sentence: SentenceTiming) -> float | None:
            length = len(sentence.delays)
            return self.on_the_clock(sentence, max(length, sentence.reference_length or 0) if longer else length)

        def timed_by_reference(sentence: SentenceTiming) -> float | None:
            return self.on_the_clock(sentence, sentence.reference_length or 0)

        plain = of_longer if longer else of_hypothesis
        found = [Score(self.name, plain, self.length, batch=self._batched(self.length), words_only=self.words_only)]
        if self.also_reference:
            batched = self._batched("reference")
            found.append(Score(f"{self.name}_ref", by_reference, "reference", "reference", batch=batched))
        if self.also_clock:
            found.append(Score(f"{self.name}_CA", timed, self.length, needs="clock"))
        if self.also_reference and self.also_clock:
            found.append(Score(f"{self.name}_ref_CA", timed_by_reference, "reference", needs="reference and clock"))
        return found

    def _batched(self, length: str) -> Callable[[PathBatch], np.ndarray] | None:
        if type(self).batch is PathMetric.batch:
            return None
        compute = self.batch

        def values(batch: PathBatch) -> np.ndarray:
            if length == "reference":
                return compute(batch, batch.reference)
            if length == "longer" and len(batch.reference):
                return compute(batch, np.maximum(batch.lengths, batch.reference))
            return compute(batch, batch.lengths)

        return values


class Quality(NamedTuple):
    """A corpus score, with its 95% interval if requested."""

    score: float
    signature: str
    interval: tuple[float, float] | None = None


class QualityMetric(Metric):
    """A corpus-level score of texts."""

    default: ClassVar[bool] = True  # computed whenever there are references

    @abstractmethod
    def corpus(
        self,
        hypotheses: Sequence[str],
        references: Sequence[Sequence[str]],  # one list for each reference translation of the corpus
        sources: Sequence[str] = (),
        samples: int = 0,  # bootstrap samples for the interval; 0: no interval
    ) -> Quality:
        """The score of a corpus."""

    def sentence(self, hypothesis: str, references: Sequence[str]) -> float | None:
        """The score of one sentence; None if the metric has no sentence score."""
        return None


@cache
def latency_scores(unit: str = "word") -> tuple[Score, ...]:
    """The latency scores of all files in this folder, in the order of the files."""
    found: list[Score] = []
    for name in plugins.names("metrics"):
        kind = plugins.find("metrics", name, Metric)
        if issubclass(kind, LatencyMetric):
            found += kind().scores()
    return tuple(score for score in found if unit != "ms" or not score.words_only)


def latency(trace: Trace, reference_length: int | None = None) -> dict[str, float | None]:
    """All latency scores of one sentence; None where a metric is undefined.

    A reference length adds AL_ref and AP_ref. Times in the trace add the wall-clock scores.

    >>> scores = latency(Trace(source_length=6, delays=(3, 4, 5, 6, 6, 6)))
    >>> scores["AL"], scores["CW"], scores["DAL"]
    (3.0, 1.5, 3.0)
    """
    sentence = SentenceTiming.of(trace, reference_length)
    values = {score.name: (score.of(sentence), score.needs) for score in latency_scores(trace.unit)}
    return {name: value for name, (value, needs) in values.items() if value is not None or not needs}
