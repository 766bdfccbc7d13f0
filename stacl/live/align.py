"""Which source word a target word came from, by the model's own account: the word that made it likely.

log p(y | x<=s, y<t) is computed for every prefix of the source at once, a row a prefix. The source word after which
a target word's probability jumps most is the one it waited for; a target word that no source word makes much
likelier (an article, an auxiliary) has none. This asks any model the same question and needs no attention weights.

A target word whose source word had not been heard when it was said was anticipated (STACL, section 6.3).
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
    """For each target word the number, from 1, of the source word that it came from, or None; a step a target piece."""
    if not source or not target:
        return (None,) * len(target)
    table = yield from surprise(translator, source, target)
    # Likelier than after any shorter prefix: a model that stumbles over what it hears and recovers learned nothing.
    least = np.minimum.accumulate(table, axis=0)
    gains = np.diff(least, axis=0)  # [S + 1, T] negative where a word helps
    gains = np.concatenate((gains[:-2], gains[-2:].sum(axis=0, keepdims=True)))  # the end belongs to the last word
    best = gains.argmin(axis=0)
    clear = gains.min(axis=0) <= -CLEAR_GAIN
    return tuple(int(word) + 1 if found else None for word, found in zip(best, clear, strict=True))


def surprise(translator: Translator, source: Sequence[str], target: Sequence[str]) -> Generator[None, None, np.ndarray]:
    """-log p of each target word, given those before it: [S + 2, T], after 0 .. S source words, and after the end."""
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
