"""All different prefixes of a batch, packed: the `prefix` encoder costs what its real positions cost.

In training, a sentence under wait-3 has a prefix for almost every word, and padding them all to the whole
sentence would double the work. So their pieces lie end to end, sorted by the length of the prefix, in one
[N, D] table: linear layers run over it as it is, and prefixes of one length form a rectangle of it, over
which attention needs no mask.

N packed positions, R prefixes, B batch, S source pieces, T target pieces, Q queries of one prefix, D width.
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
    """The prefixes of one length, and the target positions that look at them."""

    length: int
    rows: int
    queries: int  # target positions, of all rows
    most: int  # queries of the row that has most
    places: Tensor | None  # [queries] where each stands in [rows * most]; None: every row has `most`

    def heads(self, packed: Tensor, heads: int, parts: int) -> list[Tensor]:
        """[rows * length, parts * D] -> `parts` tensors [rows, H, length, d]."""
        return [split_heads(x, heads) for x in packed.unflatten(0, (self.rows, -1)).chunk(parts, dim=-1)]


@dataclass(frozen=True)
class Prefixes:
    pieces: Tensor  # [N] source pieces
    positions: Tensor  # [N] where each stands in its sentence
    order: Tensor  # [B * T] the target positions, sorted by the prefix that they look at
    groups: list[Group]

    @classmethod
    def of(cls, source: Tensor, visible: Tensor) -> Prefixes:
        """source [B, S]; visible [B, T] says how many pieces each target position may look at."""
        batch, size = source.shape
        sentence = torch.arange(batch, device=source.device)[:, None]
        different, row, queries = torch.unique(
            visible * batch + sentence, return_inverse=True, return_counts=True
        )  # sorted by length, then by sentence
        lengths = different // batch
        row = row.flatten()
        order = torch.argsort(row, stable=True)
        slot = torch.arange(len(row), device=row.device) - (torch.cumsum(queries, 0) - queries)[row[order]]
        groups = []
        first = asked = 0
        values, counts = torch.unique_consecutive(lengths, return_counts=True)
        for length, rows in zip(values.tolist(), counts.tolist(), strict=True):
            here = queries[first : first + rows]
            most, total = int(here.max()), int(here.sum())
            own = slice(asked, asked + total)
            even = total == rows * most
            places = None if even else (row[order[own]] - first) * most + slot[own]
            groups.append(Group(length, rows, total, most, places))
            first, asked = first + rows, asked + total
        seen = masks.first(lengths, size)  # [R, S]
        place = torch.arange(size, device=source.device).expand_as(seen)
        return cls(source[different % batch][seen], place[seen], order, groups)

    def sizes(self) -> list[int]:
        """Packed positions of each group."""
        return [group.length * group.rows for group in self.groups]

    def attend_within(self, attention: SelfAttention, x: Tensor) -> Tensor:
        """Self-attention of each prefix: [N, D] -> [N, D]."""
        answers = []
        parts = attention.in_proj(x).split(self.sizes())
        for group, part in zip(self.groups, parts, strict=True):
            if not group.length:
                continue
            query, key, value = group.heads(part, attention.heads, 3)
            answers.append(merge_heads(attend(query, key, value, None)).flatten(0, 1))
        return attention.out_proj(torch.cat(answers)) if answers else x

    def answer(self, attention: CrossAttention, memory: Tensor, x: Tensor) -> Tensor:
        """Each target position of x [B, T, D] asks its own prefix; memory [N, 2 D] holds keys and values."""
        rows = attention.ask(x).flatten(0, 1)
        asked = _Taken.apply(rows, self.order)  # type: ignore[no-untyped-call]  # [B * T, D]
        parts = memory.split(self.sizes())
        questions = asked.split([group.queries for group in self.groups])
        answers = []
        for group, part, question in zip(self.groups, parts, questions, strict=True):
            if not group.length:
                answers.append(torch.zeros_like(question))
                continue
            key, value = group.heads(part, attention.heads, 2)
            if group.places is not None:
                question = _Placed.apply(question, group.places, group.rows * group.most)  # type: ignore[no-untyped-call]
            found = attention.combine(question.unflatten(0, (group.rows, -1)), key, value, None).flatten(0, 1)
            answers.append(found if group.places is None else _Taken.apply(found, group.places))  # type: ignore[no-untyped-call]
        back = torch.empty_like(self.order)
        back[self.order] = torch.arange(len(back), device=back.device)
        return attention.out_proj(_Taken.apply(torch.cat(answers), back).view_as(x))  # type: ignore[no-untyped-call]


class _Taken(torch.autograd.Function):
    """x[places], no place twice: so the gradient is copied, where torch would slowly add it up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.rows = len(x)
        return x.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return grad.new_zeros(ctx.rows, grad.shape[1]).index_copy_(0, places, grad), None


class _Placed(torch.autograd.Function):
    """The opposite: rows of zeros, with x at its places."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, places: Tensor, rows: int) -> Tensor:
        ctx.save_for_backward(places)
        return x.new_zeros(rows, x.shape[1]).index_copy_(0, places, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (places,) = ctx.saved_tensors
        return grad.index_select(0, places), None, None
