"""Multi-head attention. Also defined for queries that see no key.

B batch, T queries, S keys, H heads, D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class AttentionMask:
    """A mask in the form that torch's attention takes. It is built once and used by every layer."""

    mask: Tensor  # broadcastable to [B, H, T, S]
    empty: Tensor | None  # [..., T, 1] True for queries that see no key; None: there are none

    @classmethod
    def of(cls, mask: Tensor) -> AttentionMask:
        """From a boolean mask: True where a query sees a key."""
        empty = ~mask.any(-1, keepdim=True)
        if mask.device.type != "cpu":
            return cls(mask | empty, empty)
        # torch's CPU attention adds the mask to the scores. It would convert a boolean mask again in every layer.
        scores = torch.zeros(mask.shape).masked_fill_(~(mask | empty), -torch.inf)
        return cls(scores, empty if empty.any() else None)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | AttentionMask | None) -> Tensor:
    """softmax(q k / sqrt(d)) v over the keys where the mask is True. A query that sees no key gets zeros, not NaN.

    query [B, H, T, d], key and value [B, H, S, d], mask broadcastable to [B, H, T, S]; None: all keys are visible.
    """
    if key.shape[2] == 0:
        return query.new_zeros(query.shape)
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value)
    built = mask if isinstance(mask, AttentionMask) else AttentionMask.of(mask)
    allowed = built.mask if built.mask.dtype == torch.bool else built.mask.to(query.dtype)
    attended = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
    return attended if built.empty is None else attended.masked_fill(built.empty, 0.0)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """[B, T, D] -> [B, H, T, D/H]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """[B, H, T, D/H] -> [B, T, D]"""
    return x.transpose(1, 2).flatten(2)


class SelfAttention(nn.Module):
    """Self-attention; queries, keys and values are computed in one matrix product."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj = nn.Linear(width, 3 * width)
        self.out_proj = nn.Linear(width, width)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The query, key and value of x, each [B, H, T, d]."""
        query, key, value = self.in_proj(x).chunk(3, dim=-1)
        return split_heads(query, self.heads), split_heads(key, self.heads), split_heads(value, self.heads)

    def combine(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | AttentionMask | None) -> Tensor:
        return self.out_proj(merge_heads(attend(query, key, value, mask)))


class CrossAttention(nn.Module):
    """Attention of target queries to source keys and values."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_proj = nn.Linear(width, width)
        self.memory_proj = nn.Linear(width, 2 * width)
        self.out_proj = nn.Linear(width, width)

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """The key and value of the source states [B, S, D], each [B, H, S, d]."""
        key, value = self.memory_proj(memory).chunk(2, dim=-1)
        return split_heads(key, self.heads), split_heads(value, self.heads)

    def project_query(self, x: Tensor) -> Tensor:
        """The query of x, [B, T, D]. Its heads are not split yet, so that a caller can regroup queries."""
        return self.query_proj(x)

    def combine(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | AttentionMask | None) -> Tensor:
        """query [B, T, D] -> [B, T, D], before the output projection"""
        return merge_heads(attend(split_heads(query, self.heads), key, value, mask))
