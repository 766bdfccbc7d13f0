"""The Transformer under any reading policy, with two encoders over the same weights.

`causal`: each source piece sees its predecessors. One pass, cached: reading one more word costs the same
however much was said before, but for attention itself.

`prefix`: the paper's equations. All pieces of x<=g(t) see each other, and are encoded again when the prefix
grows. In training all different prefixes of a batch are encoded together (see _prefixes.py). With g = |x|
there is one prefix a sentence: an ordinary bidirectional Transformer.

(The paper's e_ij prints W_V where W_K is meant.) Pre-norm, sinusoidal positions, tied embeddings.
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
from stacl.models.attention import CrossAttention, Sight
from stacl.models.base import Model, State
from stacl.models.batch import Batch
from stacl.models.dropout import Dropout


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
        self.encoder_layers = nn.ModuleList(EncoderLayer(width, inner, heads, dropout) for _ in range(encoder_layers))
        self.encoder_norm = nn.LayerNorm(width)
        self.decoder_layers = nn.ModuleList(DecoderLayer(width, inner, heads, dropout) for _ in range(decoder_layers))
        self.decoder_norm = nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(target_size))
        self.dropout = Dropout(dropout)
        self._initialise()

    @classmethod
    def build(cls, settings: Any, source_size: int, target_size: int, shared: bool) -> Transformer:
        return cls(source_size, target_size, **settings.sizes(), encoder=settings.encoder, shared=shared)

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.width**-0.5)

    # -- training --------------------------------------------------------------------------------------------

    def hidden(self, batch: Batch, g: Tensor) -> Tensor:
        visible = masks.visible_pieces(batch.source_units, g)  # [B, T]
        memories = self._packed(batch.source, visible) if self.prefix else self._cached(batch.source, visible)
        x = self._embed(self.target_embedding, batch.target_in, 0)
        sight = Sight.of(masks.causal(x.shape[1], device=x.device))
        for layer, memory in zip(self.decoder_layers, memories, strict=True):
            x, _ = layer(x, sight, memory, None)
        return self.decoder_norm(x)

    def project(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, *self.vocabulary())

    def vocabulary(self) -> tuple[Tensor, Tensor]:
        """Weight [V, D] and bias [V] of `project`, for the loss."""
        return self.target_embedding.weight, self.bias

    def _cached(self, source: Tensor, visible: Tensor) -> Iterator[Memory]:
        """What each decoder layer sees of the source: position (b, t) the first visible[b, t] pieces."""
        first, number = _apart(source)
        states, _ = self._encode(source[first], Sight.of(masks.causal(source.shape[1], device=source.device)))
        sight = Sight.of(masks.first(visible, source.shape[1])[:, None])
        alone = len(first) == len(source)
        return (
            CachedMemory((keys, values) if alone else (keys[number], values[number]), sight)
            for keys, values in self._remembered(states)
        )

    def _packed(self, source: Tensor, visible: Tensor) -> Iterator[Memory]:
        """The same, where all that is visible is encoded by itself."""
        prefixes = Prefixes.of(source, visible)
        states = self._encode_packed(prefixes)
        return (PrefixMemory(attention.memory_proj(states), prefixes) for attention in self._cross_attentions())

    def _encode_packed(self, prefixes: Prefixes) -> Tensor:
        """The states of the prefixes' pieces: [N, D]."""
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

    def _remembered(self, states: Tensor) -> Iterator[Cache]:
        """Keys and values of the source states [B, S, D] for each decoder layer."""
        return (attention.remember(states) for attention in self._cross_attentions())

    def _encode(
        self, source: Tensor, sight: Sight, caches: tuple[Cache, ...] | None = None
    ) -> tuple[Tensor, tuple[Cache, ...]]:
        """States of the pieces [B, n], which stand behind those in the caches, and the grown caches."""
        x = self._embed(self.source_embedding, source, caches[0][0].shape[2] if caches else 0)
        grown = []
        for index, layer in enumerate(self.encoder_layers):
            x, cache = layer(x, sight, caches[index] if caches else None)
            grown.append(cache)
        return self.encoder_norm(x), tuple(grown)

    def _embed(self, embedding: nn.Module, pieces: Tensor, before: int) -> Tensor:
        x = embedding(pieces) * math.sqrt(self.width)
        return self.dropout(x + positions(before, pieces.shape[1], self.width, x.device).to(x.dtype))

    # -- live ------------------------------------------------------------------------------------------------

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
        sight = Sight.of(masks.causal(pieces.shape[1], state.source.shape[1], pieces.device))
        states, caches = self._encode(pieces, sight, state.encoder)
        memory = tuple(
            extend(state.memory[index] if state.memory else None, *keys)
            for index, keys in enumerate(self._remembered(states))
        )
        return replace(grown, encoder=caches, memory=memory)

    def write(self, state: State, previous: Tensor, visible: Tensor | None = None) -> tuple[TransformerState, Tensor]:
        assert isinstance(state, TransformerState)
        if visible is None:
            visible = torch.full((len(previous),), state.source.shape[1], device=previous.device)
        if self.prefix:
            state = self._refresh(state, visible)
        sight = Sight.of(masks.first(visible, state.source.shape[1])[:, None, None])  # [B, 1, 1, S]
        x = self._embed(self.target_embedding, previous[:, None], state.written)
        memory = state.memory or tuple(self._remembered(x[:, :0]))
        caches = []
        for index, layer in enumerate(self.decoder_layers):
            own = state.decoder[index] if state.decoder else None
            x, cache = layer(x, None, CachedMemory(memory[index], sight), own)
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
        states, _ = self._encode(state.source[stale], Sight.of(seen[:, None, None]))
        fresh = tuple(self._remembered(states))
        if len(stale) == len(visible):
            return replace(state, memory=fresh, encoded=visible)
        assert state.memory is not None
        memory = tuple(
            (_replaced(old_key, stale, key), _replaced(old_value, stale, value))
            for (old_key, old_value), (key, value) in zip(state.memory, fresh, strict=True)
        )
        return replace(state, memory=memory, encoded=visible)


def _apart(source: Tensor) -> tuple[Tensor, Tensor]:
    """Rows [B, S] that are not like the one before them, and for each row the number of its like among these.

    A sentence that is translated several times in a row (practice.py) is encoded once.
    """
    new = torch.ones(len(source), dtype=torch.bool, device=source.device)
    new[1:] = (source[1:] != source[:-1]).any(dim=1)
    return new.nonzero().flatten(), new.cumsum(0) - 1


def _replaced(old: Tensor, rows: Tensor, new: Tensor) -> Tensor:
    """A copy of old [B, H, S, d] with some rows exchanged, padded to what was read since."""
    copy = F.pad(old, (0, 0, 0, new.shape[2] - old.shape[2]))
    copy[rows] = new
    return copy


def positions(start: int, count: int, width: int, device: torch.device) -> Tensor:
    """Sinusoidal positions from start on: [count, D]. Sines in the first half of the width, then cosines."""
    half = width // 2
    rates = torch.exp(torch.arange(half, device=device) * (-math.log(10_000.0) / max(1, half - 1)))
    angles = torch.arange(start, start + count, device=device)[:, None] * rates
    return F.pad(torch.cat((angles.sin(), angles.cos()), dim=1), (0, width - 2 * half))
