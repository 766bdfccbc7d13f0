"""Running means of every latency score over a corpus, in constant memory."""

from __future__ import annotations

import math
from array import array

import numpy as np

from stacl.metrics._batch import CELLS, PathBatch
from stacl.metrics.base import Score, SentenceTiming, latency_scores
from stacl.metrics.significance import mean_interval
from stacl.support.errors import UserError
from stacl.support.version import __version__
from stacl.traces.trace import Trace

Row = dict[str, float | None]  # one sentence's scores


class RunningMean:
    """The running mean of one score."""

    def __init__(self, score: Score) -> None:
        self.score = score
        self.total = self.weight = 0.0
        self.count = 0  # sentences for which the score is defined
        self.values = array("d")
        self.weights = array("d")

    def add(self, total: float, weight: float, count: int) -> None:
        self.total += total
        self.weight += weight
        self.count += count


class Queue:
    """Sentences collected for one batch."""

    def __init__(self) -> None:
        self.sentences: list[SentenceTiming] = []
        self.longest = 0

    def takes(self, sentence: SentenceTiming) -> bool:
        """Whether the sentence fits the batch: non-empty source and output, no times or revisions, and a reference
        length if the queued sentences have one.
        """
        if sentence.write_ms or sentence.compute_ms or sentence.erased is not None:
            return False
        if not sentence.delays or sentence.source_length <= 0 or sentence.reference_length == 0:
            return False
        first = self.sentences[0] if self.sentences else sentence
        return (first.reference_length is None) == (sentence.reference_length is None)

    def full(self, sentence: SentenceTiming) -> bool:
        return (len(self.sentences) + 1) * max(self.longest, len(sentence.delays)) > CELLS

    def add(self, sentence: SentenceTiming) -> None:
        self.sentences.append(sentence)
        self.longest = max(self.longest, len(sentence.delays))

    def batch(self) -> PathBatch:
        references = [one.reference_length for one in self.sentences if one.reference_length is not None]
        return PathBatch(
            [one.delays for one in self.sentences], [one.source_length for one in self.sentences], references
        )


class Means:
    """The running means of every latency score."""

    def __init__(self, weighted: bool, keep: bool) -> None:
        self.weighted, self.keep = weighted, keep
        self.sentences = self.written = 0
        self.source_lengths = array("d")
        self.unit = ""
        self.referenced = 0  # sentences with a reference whose length is known
        self.means: list[RunningMean] = []
        self._queue = Queue()

    def add(self, trace: Trace, length: int | None, want_row: bool) -> Row:
        if trace.unit != self.unit:
            self._set_unit(trace.unit)
        self.sentences += 1
        self.written += len(trace.delays)
        self.referenced += length is not None
        sentence = SentenceTiming.of(trace, length)
        if self.keep:
            self.source_lengths.append(trace.source_length)
        if self.keep or want_row or not self._queue.takes(sentence):
            return self._score(sentence)
        if self._queue.full(sentence):
            self._flush()
        self._queue.add(sentence)
        return {}

    def _score(self, sentence: SentenceTiming) -> Row:
        row: Row = {}
        available = sentence.available()
        for mean in self.means:
            score = mean.score
            if score.needs not in available:
                continue
            value = row[score.name] = score.of(sentence)
            if value is not None:
                weight = score.weight(sentence) if score.weight else self._default_weight(sentence)
                mean.add(value * weight, weight, 1)
                if self.keep:
                    self._keep(mean, value, weight)
        return row

    def _default_weight(self, sentence: SentenceTiming) -> float:
        return sentence.source_length if self.weighted else 1.0

    def _flush(self) -> None:
        """Score the queue with arrays. A metric without a batch form scores the sentences one by one."""
        queue, self._queue = self._queue, Queue()
        if not queue.sentences:
            return
        batch, available = queue.batch(), queue.sentences[0].available()
        weights = batch.source if self.weighted else np.ones(len(batch.source))
        for mean in self.means:
            if mean.score.needs not in available:
                continue
            if mean.score.batch is None:
                found = (mean.score.of(sentence) for sentence in queue.sentences)
                values = np.array([np.nan if value is None else value for value in found])
            else:
                values = mean.score.batch(batch)
            known = ~np.isnan(values)
            weight = weights[known]
            mean.add(float(values[known] @ weight), float(weight.sum()), int(known.sum()))

    def _keep(self, mean: RunningMean, value: float, weight: float) -> None:
        # Earlier sentences with an undefined score get NaN.
        for _ in range(self.sentences - 1 - len(mean.values)):
            mean.values.append(math.nan)
            mean.weights.append(0.0)
        mean.values.append(value)
        mean.weights.append(weight)

    def kept(self) -> dict[str, tuple[array[float], array[float]]]:
        """Value and weight of every sentence, for each score that at least one sentence defines."""
        for mean in self.means:
            missing = self.sentences - len(mean.values)
            mean.values.extend([math.nan] * missing)
            mean.weights.extend([0.0] * missing)
        return {mean.score.name: (mean.values, mean.weights) for mean in self.means if mean.count}

    def _set_unit(self, unit: str) -> None:
        if self.unit:
            raise UserError(f"sentence {self.sentences + 1} has unit {unit!r}, but those before it have {self.unit!r}")
        self.unit = unit
        self.means = [RunningMean(score) for score in latency_scores(unit)]

    def results(self, samples: int) -> tuple[dict[str, float | None], dict[str, str], dict[str, tuple[float, float]]]:
        scores: dict[str, float | None] = {}
        signatures: dict[str, str] = {}
        intervals: dict[str, tuple[float, float]] = {}
        self._flush()
        if samples:
            self.kept()
        for mean in self.means:
            name = mean.score.name
            if mean.score.needs and not mean.count:
                continue
            scores[name] = mean.total / mean.weight if mean.weight else None
            signatures[name] = self._signature(mean)
            if samples and mean.weight:
                interval = mean_interval(mean.values, mean.weights, samples)
                intervals[name] = (interval.low, interval.high)
        return scores, signatures, intervals

    def _signature(self, mean: RunningMean) -> str:
        score = mean.score
        length = score.length
        if length == "longer" and self.referenced < self.sentences:  # sentences without one use the hypothesis
            length = f"longer({self.referenced})" if self.referenced else "hypothesis"
        parts = {"unit": self.unit}
        if "clock" in score.needs:
            parts["clock"] = "wall"
        if length != "none":
            parts["length"] = length
        parts["eos"] = "no"  # the end of the sentence is neither a source nor a target unit
        parts["mean"] = "ratio" if score.weight else "source-weighted" if self.weighted else "sentences"
        parts["n"] = str(mean.count)
        if mean.count < self.sentences:
            parts["undefined"] = str(self.sentences - mean.count)
        parts["stacl"] = __version__
        return "|".join(f"{key}:{value}" for key, value in parts.items())
