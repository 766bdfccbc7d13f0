"""The Transformer under any reading policy, with two encoders over the same weights.

`causal`: each source piece sees the pieces before it. Encoder states are cached, so the cost of reading a word does not
grow with the source, except for attention itself.

`prefix`: the paper's equations. All pieces of x<=g(t) see each other and are encoded again when the prefix grows. In
training all different prefixes of a batch are encoded together (see _prefixes.py). With g = |x| each sentence has one
prefix, and the model is an ordinary bidirectional Transformer.

Pre-norm, sinusoidal positions, tied embeddings. (In the paper's e_ij, W_V is a misprint for W_K.)

B batch, S source pieces, T target pieces, D width, N packed positions of all prefixes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from stacl.models import masks
from stacl.models._layers import Cache, CachedMemory, DecoderLayer, EncoderLayer, Memory, PrefixMemory, extend
from stacl.models._prefixes import Prefixes
from stacl.models._tied import TiedModel
from stacl.models.attention import AttentionMask, CrossAttention
from stacl.models.base import State
from stacl.models.batch import Batch
from stacl.models.dropout import Dropout


@dataclass(frozen=True)
class TransformerState(State):
    source: Tensor  # [B, S] pieces read
    encoder: tuple[Cache, ...] | None  # causal: the caches of the encoder layers
    memory: tuple[Cache, ...] | None  # keys and values of the source for each decoder layer
    encoded: Tensor | None  # prefix: [B] number of pieces of each row that the memory covers
    decoder: tuple[Cache, ...] | None
    written: int  # target pieces fed so far, BEGIN included

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


class Transformer(TiedModel):
    """Encoder and decoder with the interface of models/base.py."""

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
        super().__init__(source_size, target_size, width, shared)
        self.prefix = encoder == "prefix"
        self.encoder_layers = nn.ModuleList(EncoderLayer(width, inner, heads, dropout) for _ in range(encoder_layers))
        self.encoder_norm = nn.LayerNorm(width)
        self.decoder_layers = nn.ModuleList(DecoderLayer(width, inner, heads, dropout) for _ in range(decoder_layers))
        self.decoder_norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)
        self.initialise()

    @classmethod
    def build(cls, settings: Any, source_size: int, target_size: int, shared: bool) -> Transformer:
        return cls(source_size, target_size, **settings.sizes(), encoder=settings.encoder, shared=shared)

    # -- training --------------------------------------------------------------------------------------------

    def hidden(self, batch: Batch, g: Tensor) -> Tensor:
        visible = masks.visible_pieces(batch.source_units, g)  # [B, T]
        memories = self._packed(batch.source, visible) if self.prefix else self._cached(batch.source, visible)
        x = self._embed(self.target_embedding, batch.target_in, 0)
        mask = AttentionMask.of(masks.causal(x.shape[1], device=x.device))
        for layer, memory in zip(self.decoder_layers, memories, strict=True):
            x, _ = layer(x, mask, memory, None)
        return self.decoder_norm(x)

    def _cached(self, source: Tensor, visible: Tensor) -> Iterator[Memory]:
        """The source for each decoder layer; position (b, t) sees the first visible[b, t] pieces."""
        first, number = _unique_rows(source)
        states, _ = self._encode(source[first], AttentionMask.of(masks.causal(source.shape[1], device=source.device)))
        mask = AttentionMask.of(masks.first(visible, source.shape[1])[:, None])
        all_unique = len(first) == len(source)
        return (
            CachedMemory((keys, values) if all_unique else (keys[number], values[number]), mask)
            for keys, values in self._project_memory(states)
        )

    def _packed(self, source: Tensor, visible: Tensor) -> Iterator[Memory]:
        """The same for the prefix encoder: each visible prefix is encoded separately."""
        prefixes = Prefixes.of(source, visible)
        states = self._encode_packed(prefixes)
        return (PrefixMemory(attention.memory_proj(states), prefixes) for attention in self._cross_attentions())

    def _encode_packed(self, prefixes: Prefixes) -> Tensor:
        """The states [N, D] of the pieces of all prefixes."""
        longest = max(group.length for group in prefixes.groups)
        places = positions(0, longest, self.width, prefixes.pieces.device)
        x = self.source_embedding(prefixes.pieces) * math.sqrt(self.width)
        x = self.dropout(x + places[prefixes.positions])
        for layer in self.encoder_layers:
            assert isinstance(layer, EncoderLayer)
            x = layer.packed(x, prefixes)
        return self.encoder_norm(x)

    def _cross_attentions(self) -> Iterator[CrossAttention]:
        return (layer.cross_attention for layer in self.decoder_layers)  # type: ignore[misc]

    def _project_memory(self, states: Tensor) -> Iterator[Cache]:
        """The keys and values of the source states [B, S, D] for each decoder layer."""
        return (attention.project_memory(states) for attention in self._cross_attentions())

    def _encode(
        self, source: Tensor, mask: AttentionMask, caches: tuple[Cache, ...] | None = None
    ) -> tuple[Tensor, tuple[Cache, ...]]:
        """The states of the pieces [B, n], which follow those in the caches, and the extended caches."""
        x = self._embed(self.source_embedding, source, caches[0][0].shape[2] if caches else 0)
        grown = []
        for index, layer in enumerate(self.encoder_layers):
            x, cache = layer(x, mask, caches[index] if caches else None)
            grown.append(cache)
        return self.encoder_norm(x), tuple(grown)

    def _embed(self, embedding: nn.Module, pieces: Tensor, before: int) -> Tensor:
        x = embedding(pieces) * math.sqrt(self.width)
        return self.dropout(x + positions(before, pieces.shape[1], self.width, x.device).to(x.dtype))

    # -- live ------------------------------------------------------------------------------------------------

    def start(self, size: int = 1) -> TransformerState:
        device = self.bias.device
        empty = torch.zeros(size, 0, dtype=torch.long, device=device)
        encoded = torch.full((size,), -1, device=device) if self.prefix else None
        return TransformerState(empty, None, None, encoded, None, 0)

    def read(self, state: State, pieces: Tensor) -> TransformerState:
        assert isinstance(state, TransformerState)
        grown = replace(state, source=torch.cat((state.source, pieces), dim=1))
        if self.prefix or not pieces.shape[1]:
            return grown  # the prefix is encoded by the next `write`: reading three words in a row encodes once
        mask = AttentionMask.of(masks.causal(pieces.shape[1], state.source.shape[1], pieces.device))
        states, caches = self._encode(pieces, mask, state.encoder)
        memory = tuple(
            extend(state.memory[index] if state.memory else None, *keys)
            for index, keys in enumerate(self._project_memory(states))
        )
        return replace(grown, encoder=caches, memory=memory)

    def write(self, state: State, previous: Tensor, visible: Tensor | None = None) -> tuple[TransformerState, Tensor]:
        assert isinstance(state, TransformerState)
        if visible is None:
            visible = torch.full((len(previous),), state.source.shape[1], device=previous.device)
        if self.prefix:
            state = self._refresh(state, visible)
        mask = AttentionMask.of(masks.first(visible, state.source.shape[1])[:, None, None])  # [B, 1, 1, S]
        x = self._embed(self.target_embedding, previous[:, None], state.written)
        memory = state.memory or tuple(self._project_memory(x[:, :0]))
        caches = []
        for index, layer in enumerate(self.decoder_layers):
            own = state.decoder[index] if state.decoder else None
            x, cache = layer(x, None, CachedMemory(memory[index], mask), own)
            caches.append(cache)
        logits = self.project(self.decoder_norm(x[:, 0]))
        return replace(state, decoder=tuple(caches), written=state.written + 1), logits

    def _refresh(self, state: TransformerState, visible: Tensor) -> TransformerState:
        """Encode the rows again whose prefix has changed since they were encoded."""
        assert state.encoded is not None
        stale = (state.encoded != visible).nonzero().flatten()
        if not len(stale) or not state.source.shape[1]:
            return replace(state, encoded=visible)
        seen = masks.first(visible[stale], state.source.shape[1])
        states, _ = self._encode(state.source[stale], AttentionMask.of(seen[:, None, None]))
        fresh = tuple(self._project_memory(states))
        if len(stale) == len(visible):
            return replace(state, memory=fresh, encoded=visible)
        assert state.memory is not None
        memory = tuple(
            (_replace_rows(old_key, stale, key), _replace_rows(old_value, stale, value))
            for (old_key, old_value), (key, value) in zip(state.memory, fresh, strict=True)
        )
        return replace(state, memory=memory, encoded=visible)


def _unique_rows(source: Tensor) -> tuple[Tensor, Tensor]:
    """The rows of [B, S] without consecutive repetitions, and the index of each original row among them.

    Minimum risk training repeats each sentence once per sample; this encodes it once.
    """
    new = torch.ones(len(source), dtype=torch.bool, device=source.device)
    new[1:] = (source[1:] != source[:-1]).any(dim=1)
    return new.nonzero().flatten(), new.cumsum(0) - 1


def _replace_rows(old: Tensor, rows: Tensor, new: Tensor) -> Tensor:
    """A copy of old [B, H, S, d] with these rows replaced, padded to the length of the new ones."""
    copy = F.pad(old, (0, 0, 0, new.shape[2] - old.shape[2]))
    copy[rows] = new
    return copy


def positions(start: int, count: int, width: int, device: torch.device) -> Tensor:
    """Sinusoidal position embeddings [count, D] from `start` on: sines in the first half of the width, then cosines."""
    half = width // 2
    rates = torch.exp(torch.arange(half, device=device) * (-math.log(10_000.0) / max(1, half - 1)))
    angles = torch.arange(start, start + count, device=device)[:, None] * rates
    return F.pad(torch.cat((angles.sin(), angles.cos()), dim=1), (0, width - 2 * half))
