"""Word alignment from the probabilities of the model.

log p(y | x<=s, y<t) is computed for every prefix of the source at once, one row per prefix. A target word is aligned to
the source word that raises its probability most. If no source word raises it much (an article, an auxiliary), the
target word is not aligned. This works for every model and needs no attention weights.

A target word whose source word had not been read when it was written was anticipated (STACL, section 6.3).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stacl.text.subwords import BEGIN, END

if TYPE_CHECKING:
    from stacl.live.translator import Translator

CLEAR_GAIN = 0.7  # nats: the source word at least doubles the target word's probability


def alignment(
    translator: Translator, source: Sequence[str], target: Sequence[str]
) -> Generator[None, None, tuple[int | None, ...]]:
    """Return for each target word the number, from 1, of its source word, or None. It yields once per target piece."""
    if not source or not target:
        return (None,) * len(target)
    table = yield from surprise(translator, source, target)
    # Compare with every shorter prefix: recovering from a drop in probability is not a gain.
    least = np.minimum.accumulate(table, axis=0)
    gains = np.diff(least, axis=0)  # [S + 1, T] negative where a word helps
    gains = np.concatenate((gains[:-2], gains[-2:].sum(axis=0, keepdims=True)))  # the end belongs to the last word
    best = gains.argmin(axis=0)
    clear = gains.min(axis=0) <= -CLEAR_GAIN
    return tuple(int(word) + 1 if found else None for word, found in zip(best, clear, strict=True))


def surprise(translator: Translator, source: Sequence[str], target: Sequence[str]) -> Generator[None, None, np.ndarray]:
    """Return -log p of each target word given the previous ones: [S + 2, T], after 0 .. S source words and the end."""
    engine, pieces = translator.engine, [list(translator.source_pieces.encode_word(word)) for word in source]
    seen = np.cumsum([0, *map(len, pieces), 1])
    state = engine.start(1)
    state = engine.read(state, np.array([[*(piece for word in pieces for piece in word), END]]))
    state = engine.select(state, np.zeros(len(seen), dtype=np.int64))
    found = np.zeros((len(seen), len(target)))
    previous = BEGIN
    for place, word in enumerate(target):
        for piece in translator.target_pieces.encode_word(word):
            yield
            state, logits = engine.write(state, np.full(len(seen), previous), seen)
            found[:, place] += np.logaddexp.reduce(logits, axis=1) - logits[:, piece]
            previous = piece
    return found
