"""Pre-norm Transformer layers with a KV cache.

B batch, n new positions, S source pieces, H heads, D width, d = D/H.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from stacl.models._prefixes import Prefixes
from stacl.models.attention import AttentionMask, CrossAttention, SelfAttention
from stacl.models.dropout import Dropout

Cache = tuple[Tensor, Tensor]  # keys and values, each [B, H, n, d]


class FeedForward(nn.Module):
    def __init__(self, width: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.dropout(F.relu(self.up(x), inplace=True)))


class EncoderLayer(nn.Module):
    def __init__(self, width: int, inner: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = FeedForward(width, inner, dropout)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: AttentionMask | None, cache: Cache | None = None) -> tuple[Tensor, Cache]:
        """The new states of x [B, n, D], and the cache with the keys and values of x appended."""
        query, key, value = self.attention.project(self.attention_norm(x))
        grown = extend(cache, key, value)
        x = self.dropout.added(x, self.attention.combine(query, *grown, mask))
        return self.dropout.added(x, self.feed(self.feed_norm(x))), grown

    def packed(self, x: Tensor, prefixes: Prefixes) -> Tensor:
        """The same over packed prefixes, with bidirectional attention inside each prefix: [N, D] -> [N, D]."""
        x = self.dropout.added(x, prefixes.attend_within(self.attention, self.attention_norm(x)))
        return self.dropout.added(x, self.feed(self.feed_norm(x)))


class Memory(Protocol):
    """The source, as a decoder layer sees it."""

    def attend(self, attention: CrossAttention, x: Tensor) -> Tensor:
        """Cross-attention of the target states x to the source: [B, n, D] -> [B, n, D]"""


class DecoderLayer(nn.Module):
    def __init__(self, width: int, inner: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.self_norm = nn.LayerNorm(width)
        self.self_attention = SelfAttention(width, heads)
        self.cross_norm = nn.LayerNorm(width)
        self.cross_attention = CrossAttention(width, heads)
        self.feed_norm = nn.LayerNorm(width)
        self.feed = FeedForward(width, inner, dropout)
        self.dropout = Dropout(dropout)

    def forward(
        self, x: Tensor, mask: AttentionMask | None, memory: Memory, cache: Cache | None
    ) -> tuple[Tensor, Cache]:
        query, key, value = self.self_attention.project(self.self_norm(x))
        grown = extend(cache, key, value)
        x = self.dropout.added(x, self.self_attention.combine(query, *grown, mask))
        x = self.dropout.added(x, memory.attend(self.cross_attention, self.cross_norm(x)))
        return self.dropout.added(x, self.feed(self.feed_norm(x))), grown


def extend(cache: Cache | None, key: Tensor, value: Tensor) -> Cache:
    """A new cache with the key and value appended. The old one does not change: other states may share it."""
    if cache is None:
        return key, value
    return torch.cat((cache[0], key), dim=2), torch.cat((cache[1], value), dim=2)


@dataclass(frozen=True)
class CachedMemory:
    """One sequence of keys and values per sentence."""

    keys: Cache  # each [B, H, S, d]
    mask: AttentionMask

    def attend(self, attention: CrossAttention, x: Tensor) -> Tensor:
        return attention.out_proj(attention.combine(attention.project_query(x), *self.keys, self.mask))


@dataclass(frozen=True)
class PrefixMemory:
    """The packed prefixes of a batch. Each target position attends to its own prefix."""

    keys: Tensor  # [N, 2 D] keys and values
    prefixes: Prefixes

    def attend(self, attention: CrossAttention, x: Tensor) -> Tensor:
        return self.prefixes.attend_across(attention, self.keys, x)
