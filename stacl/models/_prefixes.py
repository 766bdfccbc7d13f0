"""All different prefixes of a batch, packed without padding, for the `prefix` encoder.

In training, a sentence under wait-3 has a prefix for almost every word. Padding them all to the whole sentence would
double the work. So their pieces are concatenated, sorted by the length of the prefix, in one [N, D] table. Linear
layers run over the table directly. The prefixes of one length form a rectangle, so their attention needs no mask.

N packed positions, R prefixes, B batch, S source pieces, T target pieces, D width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from stacl.models import masks
from stacl.models.attention import CrossAttention, SelfAttention, attend, merge_heads, split_heads


@dataclass(frozen=True)
class Group:
    """The prefixes of one length, and the target positions that attend to them."""

    length: int
    rows: int
    queries: int  # target positions of all rows
    max_queries: int  # queries of the row with the most
    places: Tensor | None  # [queries] index of each in [rows * max_queries]; None: all rows have max_queries

    def heads(self, packed: Tensor, heads: int, parts: int) -> list[Tensor]:
        """[rows * length, parts * D] -> `parts` tensors [rows, H, length, d]."""
        return [split_heads(x, heads) for x in packed.unflatten(0, (self.rows, -1)).chunk(parts, dim=-1)]


@dataclass(frozen=True)
class Prefixes:
    pieces: Tensor  # [N] source pieces
    positions: Tensor  # [N] position of each piece in its sentence
    order: Tensor  # [B * T] the target positions, sorted by their prefix
    groups: list[Group]

    @classmethod
    def of(cls, source: Tensor, visible: Tensor) -> Prefixes:
        """source [B, S]; visible [B, T]: the number of pieces that each target position sees."""
        batch, size = source.shape
        sentence = torch.arange(batch, device=source.device)[:, None]
        unique, row, queries = torch.unique(
            visible * batch + sentence, return_inverse=True, return_counts=True
        )  # sorted by length, then by sentence
        lengths = unique // batch
        row = row.flatten()
        order = torch.argsort(row, stable=True)
        slot = torch.arange(len(row), device=row.device) - (torch.cumsum(queries, 0) - queries)[row[order]]
        groups = []
        first = done = 0
        values, counts = torch.unique_consecutive(lengths, return_counts=True)
        for length, rows in zip(values.tolist(), counts.tolist(), strict=True):
            here = queries[first : first + rows]
            most, total = int(here.max()), int(here.sum())
            part = slice(done, done + total)
            even = total == rows * most
            places = None if even else (row[order[part]] - first) * most + slot[part]
            groups.append(Group(length, rows, total, most, places))
            first, done = first + rows, done + total
        seen = masks.first(lengths, size)  # [R, S]
        place = torch.arange(size, device=source.device).expand_as(seen)
        return cls(source[unique % batch][seen], place[seen], order, groups)

    def sizes(self) -> list[int]:
        """The number of packed positions of each group."""
        return [group.length * group.rows for group in self.groups]

    def attend_within(self, attention: SelfAttention, x: Tensor) -> Tensor:
        """Self-attention inside each prefix: [N, D] -> [N, D]."""
        results = []
        parts = attention.in_proj(x).split(self.sizes())
        for group, part in zip(self.groups, parts, strict=True):
            if not group.length:
                continue
            query, key, value = group.heads(part, attention.heads, 3)
            results.append(merge_heads(attend(query, key, value, None)).flatten(0, 1))
        return attention.out_proj(torch.cat(results)) if results else x

    def attend_across(self, attention: CrossAttention, memory: Tensor, x: Tensor) -> Tensor:
        """Cross-attention of each target position of x [B, T, D] to its prefix; memory [N, 2 D]: keys and values."""
        rows = attention.project_query(x).flatten(0, 1)
        sorted_rows = _Gather.apply(rows, self.order)  # type: ignore[no-untyped-call]  # [B * T, D]
        parts = memory.split(self.sizes())
        queries = sorted_rows.split([group.queries for group in self.groups])
        results = []
        for group, part, query in zip(self.groups, parts, queries, strict=True):
            if not group.length:
                results.append(torch.zeros_like(query))
                continue
            key, value = group.heads(part, attention.heads, 2)
            if group.places is not None:
                query = _Scatter.apply(query, group.places, group.rows * group.max_queries)  # type: ignore[no-untyped-call]
            found = attention.combine(query.unflatten(0, (group.rows, -1)), key, value, None).flatten(0, 1)
            results.append(found if group.places is None else _Gather.apply(found, group.places))  # type: ignore[no-untyped-call]
        back = torch.empty_like(self.order)
        back[self.order] = torch.arange(len(back), device=back.device)
        return attention.out_proj(_Gather.apply(torch.cat(results), back).view_as(x))  # type: ignore[no-untyped-call]


class _Gather(torch.autograd.Function):
    """x[places] for distinct places: the gradient is copied, which is faster than torch's sum."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.rows = len(x)
        return x.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return grad.new_zeros(ctx.rows, grad.shape[1]).index_copy_(0, places, grad), None


class _Scatter(torch.autograd.Function):
    """The inverse of _Gather: zeros with the rows of x at its places."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor, rows: int) -> Tensor:
        ctx.save_for_backward(places)
        return x.new_zeros(rows, x.shape[1]).index_copy_(0, places, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (places,) = ctx.saved_tensors
        return grad.index_select(0, places), None, None
