"""Average Token Delay: from the end of a source word to the end of the target word that corresponds to it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stacl.metrics._batch import PathBatch
from stacl.metrics.base import PathMetric, SentenceTiming


def source_positions(delays: Sequence[float]) -> list[float]:
    """a(t): the source position that target word t corresponds to.

    Words of equal delay form a chunk. If the target was ahead of the source before the chunk, its positions are set
    back by the difference. No word corresponds to a source word that was not yet read.

    >>> source_positions([1, 1, 1, 4, 4])
    [1, 1, 1, 2, 3]
    """
    found: list[float] = []
    add = found.append
    last, set_back = 0.0, 0.0
    for t, delay in enumerate(delays, 1):
        if delay != last:
            ahead = t - 1 - last
            set_back = ahead if ahead > 0 else 0
            last = delay
        position = t - set_back
        add(position if position < delay else delay)
    return found


def average_token_delay(delays: Sequence[float], source_length: float, target_length: float) -> float | None:
    """Kano et al. 2023, for text: every word, read or written, takes one unit of time.

    ATD = 1/|y| * sum_t [ e(t) - a(t) ],  e(t) = max(g(t), e(t-1)) + 1,
    a(t) = min(t - max(0, Ybefore - Xbefore), g(t))

    Ybefore and Xbefore are the words written and read before the chunk of t.

    >>> average_token_delay([1, 2, 3, 4, 5, 6, 6, 6, 6], 6, 9)
    1.6666666666666667
    """
    if not delays or source_length <= 0:
        return None
    end, ends = 0.0, 0.0
    for delay in delays:
        end = (delay if delay > end else end) + 1
        ends += end
    return (ends - sum(source_positions(delays))) / len(delays)


def token_delay_on_the_clock(
    delays: Sequence[float], read_ms: Sequence[float], write_ms: Sequence[float]
) -> float | None:
    """ATD_CA = 1/|y| * sum_t [ time at which y_t was shown - time at which x_a(t) arrived ]; x_0 arrives at 0."""
    if not delays or not read_ms or not write_ms:
        return None
    arrived = [0.0, *read_ms]
    pairs = zip(write_ms, source_positions(delays), strict=True)
    return sum(shown - arrived[int(position)] for shown, position in pairs) / len(delays)


def token_delay_batch(batch: PathBatch, target_lengths: np.ndarray) -> np.ndarray:
    # e(t) - t is the running maximum of g(t) - (t-1). A chunk begins where the delay changes.
    ends = batch.steps + 1 + np.maximum.accumulate(batch.delays - batch.steps, axis=1)
    begins = np.where(batch.delays != batch.previous, batch.steps, 0)
    begin = np.maximum.accumulate(begins, axis=1)
    set_back = np.maximum(0.0, begin - np.take_along_axis(batch.previous, begin, axis=1))
    sources = np.minimum(batch.steps + 1 - set_back, batch.delays)
    return (batch.total(ends) - batch.total(sources)) / batch.lengths


class ATD(PathMetric):
    name = "ATD"
    length = "none"
    words_only = True
    batch = staticmethod(token_delay_batch)
    compute = staticmethod(average_token_delay)

    def on_the_clock(self, sentence: SentenceTiming, target_length: float) -> float | None:
        if not sentence.source_ms:
            return None
        # Chunks are defined by delays in words: in milliseconds every word would be its own chunk.
        return token_delay_on_the_clock(sentence.delays, sentence.read_ms, sentence.write_ms)
