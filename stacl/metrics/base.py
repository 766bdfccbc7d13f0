"""What a metric is. A latency metric is a pure function of numbers; a quality metric sees texts.

A file in this folder holds one metric: the function with its formula, and a class that says under which names
it is reported, with whose length, and what it needs. `docs/metrics.md` says what each of them means.
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
    """The numbers of one sentence that latency metrics may look at. Times are milliseconds from its start."""

    delays: Sequence[float]  # g(1) .. g(|y|)
    source_length: float  # |x|
    reference_length: int | None = None
    write_ms: Sequence[float] = ()  # when each target unit was shown
    read_ms: Sequence[float] = ()  # when each source unit came
    source_ms: float = 0.0  # how long the source lasted; 0 where unknown
    compute_ms: float = 0.0  # time spent computing; 0 where unknown
    erased: int | None = None  # target units taken back; None for a system that does not log its revisions

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

    def have(self) -> tuple[str, ...]:
        """Which of the needs of a Score this sentence can meet."""
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
    """One reported number: its name, how to get it from a sentence, and what its signature must say."""

    name: str
    of: Callable[[SentenceTiming], float | None]  # None: not defined for this sentence
    length: str = "none"  # whose length is Y: hypothesis, reference, longer (of the two) or none
    needs: str = ""  # reference, clock, reference and clock, or revisions: without it the number is not reported at all
    # What a sentence weighs in the mean. With its own denominator, the mean is the ratio of the sums.
    weight: Callable[[SentenceTiming], float] | None = None
    # The same for many ordinary sentences at once; without it they are scored one by one.
    batch: Callable[[PathBatch], np.ndarray] | None = None
    words_only: bool = False  # without meaning where delays are the milliseconds of a speech system


class Metric(ABC):
    """Anything in this folder."""

    name: ClassVar[str]


class LatencyMetric(Metric):
    """Figures that are taken from one sentence's numbers and averaged over the corpus."""

    @abstractmethod
    def scores(self) -> list[Score]:
        """What is reported."""


class PathMetric(LatencyMetric):
    """A pure function of delays, source length and target length, and the names of what it reports."""

    length: ClassVar[str] = "hypothesis"
    also_reference: ClassVar[bool] = False  # report NAME_ref too, with the reference's length
    also_clock: ClassVar[bool] = True  # report NAME_CA too: the same function of milliseconds
    words_only: ClassVar[bool] = False

    @staticmethod
    @abstractmethod
    def compute(delays: Sequence[float], source_length: float, target_length: float) -> float | None:
        """The metric itself; None where it is not defined."""

    @staticmethod
    def batch(batch: PathBatch, target_lengths: np.ndarray) -> np.ndarray:
        """`compute` for many sentences at once, NaN where it is not defined. Not needed, but fast."""
        raise NotImplementedError

    def on_the_clock(self, sentence: SentenceTiming, target_length: float) -> float | None:
        """The metric in wall-clock time: when it was shown, not after how many words."""
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
    """A corpus-level figure, with its 95% interval where that was asked for."""

    score: float
    signature: str
    interval: tuple[float, float] | None = None


class QualityMetric(Metric):
    """A corpus-level function of texts."""

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
        """The score of one sentence, where that makes sense."""
        return None


@cache
def latency_scores(unit: str = "word") -> tuple[Score, ...]:
    """Every latency figure of every file in this folder, in the files' order."""
    found: list[Score] = []
    for name in plugins.names("metrics"):
        kind = plugins.find("metrics", name, Metric)
        if issubclass(kind, LatencyMetric):
            found += kind().scores()
    return tuple(score for score in found if unit != "ms" or not score.words_only)


def latency(trace: Trace, reference_length: int | None = None) -> dict[str, float | None]:
    """Every latency figure of one sentence; None where a metric is not defined for it.

    With a reference's length also AL_ref and AP_ref; with the times in the trace also the wall-clock figures.

    >>> scores = latency(Trace(source_length=6, delays=(3, 4, 5, 6, 6, 6)))
    >>> scores["AL"], scores["CW"], scores["DAL"]
    (3.0, 1.5, 3.0)
    """
    sentence = SentenceTiming.of(trace, reference_length)
    values = {score.name: (score.of(sentence), score.needs) for score in latency_scores(trace.unit)}
    return {name: value for name, (value, needs) in values.items() if value is not None or not needs}
