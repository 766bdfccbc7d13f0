"""A long stream in one session: no word lost, constant memory. A short form of `benchmarks/hour.py`."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
import torch

from benchmarks.hour import Stream, listen
from stacl.live.sentence import Sentence
from tests.helpers import GERMAN, random_translator

pytestmark = pytest.mark.slow
# Sentences with marks, forty words without a mark, and abbreviations and numbers that end no sentence.
TEXT = " ".join([*GERMAN, "Am 3. Oktober kam z. B. Dr. Meier.", " ".join(GERMAN[3].rstrip(".").split() * 4), *GERMAN])
WORDS = (TEXT.split() * 20)[:1500]


def alive(kind: type) -> int:
    return sum(issubclass(type(thing), kind) for thing in gc.get_objects())


def test_a_long_stream_loses_nothing_and_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stacl.live.session.KEPT_TRACES", 20)  # full after the first third
    translator = random_translator()
    third = len(WORDS) // 3
    stream, peaks, kept = Stream(), [], []
    tracemalloc.start()
    try:
        for count in listen(stream, translator, WORDS, "wait-k:2"):
            if count % third:
                continue
            peaks.append(tracemalloc.get_traced_memory()[1])
            gc.collect()
            kept.append((alive(Sentence), alive(torch.Tensor)))
            tracemalloc.reset_peak()
    finally:
        tracemalloc.stop()
    assert stream.source == WORDS
    assert stream.traced == stream.written > 0
    assert sum(stream.sentences) == len(stream.milliseconds) == len(WORDS)
    assert len(stream.sentences) > 100
    assert max(stream.sentences) <= 80
    _, second, last = peaks
    assert last < 1.05 * second + 100_000
    assert all(sentences <= 2 for sentences, _ in kept)
    assert kept[-1][1] <= kept[0][1] + 100
