"""The Transformer under any reading policy, with two encoders over the same weights.

`causal`: each source piece sees its predecessors. One pass, cached: reading one more word costs the same however
much was said before, but for attention itself.

`prefix`: the paper's equations. All pieces of x<=g(t) see each other, and are encoded again when the prefix grows. In
training all different prefixes of a batch are encoded together as rows of one larger batch. With g = |x| there is
one prefix a sentence: an ordinary bidirectional Transformer.

(The paper's e_ij prints W_V where W_K is meant.) Pre-norm, sinusoidal positions, tied embeddings.
B batch, S source pieces, T target pieces, D width, R prefixes, Q queries of one prefix.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from stacl import masks
from stacl.attention import CrossAttention, SelfAttention
from stacl.batches import Batch
from stacl.models.base import Model, State

Cache = tuple[Tensor, Tensor]  # keys and values, each [B, H, n, d]


class FeedForward(nn.Module):
    def __init__(self, width: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.dropout(F.relu(self.up(x))))


class EncoderLayer(nn.Module):
    def __init__(self, width: int, inner: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = FeedForward(width, inner, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """The new states of x [B, n, D], and the cache with x's keys and values appended."""
        query, key, value = self.attention.project(self.attention_norm(x))
        grown = extend(cache, key, value)
        x = x + self.dropout(self.attention.combine(query, *grown, mask))
        return x + self.dropout(self.feed(self.feed_norm(x))), grown


class DecoderLayer(nn.Module):
    def __init__(self, width: int, inner: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.self_norm = nn.LayerNorm(width)
        self.self_attention = SelfAttention(width, heads)
        self.cross_norm = nn.LayerNorm(width)
        self.cross_attention = CrossAttention(width, heads)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = FeedForward(width, inner, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None, memory: Memory, cache: Cache | None) -> tuple[Tensor, Cache]:
        query, key, value = self.self_attention.project(self.self_norm(x))
        grown = extend(cache, key, value)
        x = x + self.dropout(self.self_attention.combine(query, *grown, mask))
        x = x + self.dropout(memory.answer(self.cross_attention, self.cross_norm(x)))
        return x + self.dropout(self.feed(self.feed_norm(x))), grown


def extend(cache: Cache | None, key: Tensor, value: Tensor) -> Cache:
    """A new cache: the old one is left as it was, for whoever still holds it."""
    if cache is None:
        return key, value
    return torch.cat((cache[0], key), dim=2), torch.cat((cache[1], value), dim=2)


@dataclass(frozen=True)
class Memory:
    """What one decoder layer sees of the source: keys and values, and who may look at what.

    With several prefixes a sentence, the rows of the memory are prefixes, R in all, and each target position asks the
    row of its own prefix: `row` and `slot` [B, T] say where its query goes, so that one attention answers all.
    """

    keys: Cache  # each [R, H, S, d]
    mask: Tensor | None  # [R, 1, Q, S]
    row: Tensor | None = None
    slot: Tensor | None = None

    def answer(self, attention: CrossAttention, x: Tensor) -> Tensor:
        query = attention.ask(x)  # [B, T, D]
        if self.row is None or self.slot is None or self.mask is None:
            return attention.out_proj(attention.combine(query, *self.keys, self.mask))
        rows, queries = self.mask.shape[0], self.mask.shape[2]
        grouped = query.new_zeros(rows, queries, query.shape[2])
        grouped = grouped.index_put((self.row, self.slot), query)  # [R, Q, D]
        return attention.out_proj(attention.combine(grouped, *self.keys, self.mask)[self.row, self.slot])


@dataclass(frozen=True)
class TransformerState(State):
    source: Tensor  # [B, S] pieces read
    encoder: tuple[Cache, ...] | None  # causal: the caches of the encoder layers
    memory: tuple[Cache, ...] | None  # keys and values of the source for each decoder layer
    encoded: Tensor | None  # prefix: [B] how many pieces of each row the memory was made from
    decoder: tuple[Cache, ...] | None
    written: int  # target pieces fed so far, BEGIN counted

    def select(self, rows: Tensor) -> TransformerState:
        def taken(caches: tuple[Cache, ...] | None) -> tuple[Cache, ...] | None:
            return caches and tuple((key[rows], value[rows]) for key, value in caches)

        return TransformerState(
            source=self.source[rows],
            encoder=taken(self.encoder),
            memory=taken(self.memory),
            encoded=None if self.encoded is None else self.encoded[rows],
            decoder=taken(self.decoder),
            written=self.written,
        )


class Transformer(Model):
    """Encoder and decoder behind the contract of models/base.py."""

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        width: int,
        inner: int,
        heads: int,
        encoder_layers: int,
        decoder_layers: int,
        dropout: float = 0.0,
        encoder: str = "causal",
        shared: bool = False,
    ) -> None:
        super().__init__()
        self.width = width
        self.prefix = encoder == "prefix"
        self.source_embedding = nn.Embedding(source_size, width)
        self.target_embedding = self.source_embedding if shared else nn.Embedding(target_size, width)
        self.encoder_layers = nn.ModuleList(
            EncoderLayer(width, inner, heads, dropout) for _ in range(encoder_layers)
        )
        self.encoder_norm = nn.LayerNorm(width)
        self.decoder_layers = nn.ModuleList(
            DecoderLayer(width, inner, heads, dropout) for _ in range(decoder_layers)
        )
        self.decoder_norm = nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(target_size))
        self.dropout = nn.Dropout(dropout)
        self._initialise()

    @classmethod
    def build(cls, settings: Any, source_size: int, target_size: int, shared: bool) -> Transformer:
        return cls(
            source_size,
            target_size,
            width=settings.width,
            inner=settings.inner,
            heads=settings.heads,
            encoder_layers=settings.encoder_layers,
            decoder_layers=settings.decoder_layers,
            dropout=settings.dropout,
            encoder=settings.encoder,
            shared=shared,
        )

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.width**-0.5)

    # -- training ------------------------------------------------------------------------------------------------

    def hidden(self, batch: Batch, g: Tensor) -> Tensor:
        pieces = masks.visible_pieces(batch.source_units, g)  # [B, T]
        length = batch.target_in.shape[1]
        if self.prefix:
            source, mask, row, slot = self._prefixes(batch.source, pieces)
        else:
            states, _ = self._encode(batch.source, masks.causal(batch.source.shape[1], device=pieces.device))
            source, mask, row, slot = states, masks.first(pieces, batch.source.shape[1])[:, None], None, None
        x = self._embed(self.target_embedding, batch.target_in, 0)
        self_mask = masks.causal(length, device=pieces.device)
        for layer in self.decoder_layers:
            memory = Memory(layer.cross_attention.remember(source), mask, row, slot)
            x, _ = layer(x, self_mask, memory, None)
        return self.decoder_norm(x)

    def project(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.target_embedding.weight, self.bias)

    def _prefixes(self, source: Tensor, pieces: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """All different prefixes of the batch, encoded as rows of one batch.

        source [B, S], pieces [B, T] -> states [R, S, D], mask [R, 1, Q, S], row and slot [B, T].
        """
        batch, size = source.shape
        sentence = torch.arange(batch, device=source.device)[:, None].expand_as(pieces)
        different, row = torch.unique(sentence * (size + 1) + pieces, return_inverse=True)
        lengths = different % (size + 1)  # [R]
        # Positions of one prefix stand side by side, because g never decreases: the slot is the distance to the first.
        position = torch.arange(pieces.shape[1], device=source.device).expand_as(pieces)
        first = torch.full_like(different, pieces.shape[1]).scatter_reduce(0, row.flatten(), position.flatten(), "amin")
        slot = position - first[row]
        seen = masks.first(lengths, size)  # [R, S]
        states, _ = self._encode(source[different // (size + 1)], seen[:, None, None])
        mask = seen[:, None, None].expand(-1, 1, int(slot.max()) + 1, -1)
        return states, mask, row, slot

    def _encode(
        self, source: Tensor, mask: Tensor | None, caches: tuple[Cache, ...] | None = None
    ) -> tuple[Tensor, tuple[Cache, ...]]:
        """States of the pieces [B, n], which stand behind those in the caches, and the grown caches."""
        x = self._embed(self.source_embedding, source, caches[0][0].shape[2] if caches else 0)
        grown = []
        for index, layer in enumerate(self.encoder_layers):
            x, cache = layer(x, mask, caches[index] if caches else None)
            grown.append(cache)
        return self.encoder_norm(x), tuple(grown)

    def _embed(self, embedding: nn.Module, pieces: Tensor, before: int) -> Tensor:
        x = embedding(pieces) * math.sqrt(self.width)
        return self.dropout(x + positions(before, pieces.shape[1], self.width, x.device).to(x.dtype))

    # -- live ----------------------------------------------------------------------------------------------------

    def start(self, size: int = 1) -> TransformerState:
        device = self.bias.device
        nothing = torch.zeros(size, 0, dtype=torch.long, device=device)
        encoded = torch.full((size,), -1, device=device) if self.prefix else None
        return TransformerState(nothing, None, None, encoded, None, 0)

    def read(self, state: State, pieces: Tensor) -> TransformerState:
        assert isinstance(state, TransformerState)
        grown = replace(state, source=torch.cat((state.source, pieces), dim=1))
        if self.prefix or not pieces.shape[1]:
            return grown  # a prefix is encoded when it is asked for: reading three words at once encodes once
        mask = masks.causal(pieces.shape[1], state.source.shape[1], pieces.device)
        states, caches = self._encode(pieces, mask, state.encoder)
        memory = tuple(
            extend(state.memory[index] if state.memory else None, *layer.cross_attention.remember(states))
            for index, layer in enumerate(self.decoder_layers)
        )
        return replace(grown, encoder=caches, memory=memory)

    def write(
        self, state: State, previous: Tensor, visible: Tensor | None = None
    ) -> tuple[TransformerState, Tensor]:
        assert isinstance(state, TransformerState)
        if visible is None:
            visible = torch.full((len(previous),), state.source.shape[1], device=previous.device)
        if self.prefix:
            state = self._refresh(state, visible)
        source_mask = masks.first(visible, state.source.shape[1])[:, None, None]  # [B, 1, 1, S]
        x = self._embed(self.target_embedding, previous[:, None], state.written)
        caches = []
        for index, layer in enumerate(self.decoder_layers):
            keys = state.memory[index] if state.memory else layer.cross_attention.remember(x[:, :0])
            x, cache = layer(x, None, Memory(keys, source_mask), state.decoder[index] if state.decoder else None)
            caches.append(cache)
        logits = self.project(self.decoder_norm(x[:, 0]))
        return replace(state, decoder=tuple(caches), written=state.written + 1), logits

    def _refresh(self, state: TransformerState, visible: Tensor) -> TransformerState:
        """Encode again the rows whose prefix has grown since their memory was made."""
        assert state.encoded is not None
        stale = (state.encoded != visible).nonzero().flatten()
        if not len(stale) or not state.source.shape[1]:
            return replace(state, encoded=visible)
        seen = masks.first(visible[stale], state.source.shape[1])
        states, _ = self._encode(state.source[stale], seen[:, None, None])
        fresh = tuple(layer.cross_attention.remember(states) for layer in self.decoder_layers)
        if len(stale) == len(visible):
            return replace(state, memory=fresh, encoded=visible)
        assert state.memory is not None
        memory = tuple(
            (_replaced(old_key, stale, key), _replaced(old_value, stale, value))
            for (old_key, old_value), (key, value) in zip(state.memory, fresh, strict=True)
        )
        return replace(state, memory=memory, encoded=visible)


def _replaced(old: Tensor, rows: Tensor, new: Tensor) -> Tensor:
    """A copy of old [B, H, S, d] with some rows exchanged, padded to what was read since."""
    copy = F.pad(old, (0, 0, 0, new.shape[2] - old.shape[2]))
    copy[rows] = new
    return copy


def positions(start: int, count: int, width: int, device: torch.device) -> Tensor:
    """Sinusoidal positions start .. start+count-1: [count, D]. Sines in the first half of the width, then cosines."""
    half = width // 2
    rates = torch.exp(torch.arange(half, device=device) * (-math.log(10_000.0) / max(1, half - 1)))
    angles = torch.arange(start, start + count, device=device)[:, None] * rates
    return F.pad(torch.cat((angles.sin(), angles.cos()), dim=1), (0, width - 2 * half))
