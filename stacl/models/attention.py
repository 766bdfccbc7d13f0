"""Multi-head attention, over nothing too.

B batch, T queries, S keys, H heads, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Sight:
    """Who may look at what, in the form that torch's attention wants: made once, used by every layer."""

    mask: Tensor  # broadcastable to [B, H, T, S]
    blind: Tensor | None  # [..., T, 1] True for queries that may look at nothing; None: there is none

    @classmethod
    def of(cls, mask: Tensor) -> Sight:
        """From a mask that is True where a query may look."""
        blind = ~mask.any(-1, keepdim=True)
        if mask.device.type != "cpu":
            return cls(mask | blind, blind)
        # A CPU's attention adds its mask to the scores, and would make these numbers anew in every layer.
        scores = torch.zeros(mask.shape).masked_fill_(~(mask | blind), -torch.inf)
        return cls(scores, blind if blind.any() else None)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | Sight | None) -> Tensor:
    """softmax(q k / sqrt(d)) v, where the mask is True; a query that may look at nothing gets zeros, not NaN.

    query [B, H, T, d], key and value [B, H, S, d], mask broadcastable to [B, H, T, S]. None: everything is
    visible.
    """
    if key.shape[2] == 0:
        return query.new_zeros(query.shape)
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value)
    sight = mask if isinstance(mask, Sight) else Sight.of(mask)
    allowed = sight.mask if sight.mask.dtype == torch.bool else sight.mask.to(query.dtype)
    attended = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
    return attended if sight.blind is None else attended.masked_fill(sight.blind, 0.0)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[B, T, D] -> [B, H, T, D/H]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """[B, H, T, D/H] -> [B, T, D]"""
    return x.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    """Queries, keys and values of the same sequence, in one product."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj = nn.Linear(width, 3 * width)
        self.out_proj = nn.Linear(width, width)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of x, each [B, H, T, d]."""
        query, key, value = self.in_proj(x).chunk(3, dim=-1)
        return split_heads(query, self.heads), split_heads(key, self.heads), split_heads(value, self.heads)

    def combine(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | Sight | None) -> Tensor:
        return self.out_proj(merge_heads(attend(query, key, value, mask)))


class CrossAttention(nn.Module):
    """Queries of the target over keys and values of the source."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_proj = nn.Linear(width, width)
        self.memory_proj = nn.Linear(width, 2 * width)
        self.out_proj = nn.Linear(width, width)

    def remember(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Key and value of the source states [B, S, D], each [B, H, S, d]."""
        key, value = self.memory_proj(memory).chunk(2, dim=-1)
        return split_heads(key, self.heads), split_heads(value, self.heads)

    def ask(self, x: Tensor) -> Tensor:
        """[B, T, D] before its heads are split, so that a caller may regroup queries."""
        return self.query_proj(x)

    def combine(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | Sight | None) -> Tensor:
        """query [B, T, D] -> [B, T, D]"""
        return merge_heads(attend(split_heads(query, self.heads), key, value, mask))
