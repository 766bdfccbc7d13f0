"""The paper's RNN: a recurrent encoder and decoder with attention, under any reading policy.

The encoder is unidirectional. The state of a piece does not change when more is read, so reading has a constant cost
per word. The decoder starts from zeros: the last encoder state would have seen the whole source. It sees the source
only through attention to the visible pieces.

The lowest decoder layer attends to the source, and the layers above receive the result (as in GNMT, Wu et al. 2016).
Luong et al. (2015, section 3.3) feed it back into the lowest layer instead. Without this input feeding each layer runs
over all target positions at once in torch's kernels, which makes training several times faster. The upper layers still
carry earlier attention results in their states. With one decoder layer it is Luong's model without input feeding.

Config fields: `width` is the size of states and embeddings, `inner` that of the layer between decoder and vocabulary,
`heads` the number of attention heads. `encoder = "prefix"` is an error.

B batch, S source pieces, T target pieces, H heads, D width, d = D/H.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from stacl.models import masks
from stacl.models._tied import TiedModel
from stacl.models.attention import AttentionMask, CrossAttention
from stacl.models.base import State
from stacl.models.batch import Batch
from stacl.models.dropout import Dropout
from stacl.support.errors import UserError

Memory = tuple[Tensor, Tensor]  # keys and values of the source read so far, each [B, H, S, d]


class RecurrentLayer(nn.Module):
    """x + GRU(norm(x)) over any number of steps.

    On a CPU, torch's LSTM would take a fifth longer in training and several times as long in live use.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, carry: Tensor) -> tuple[Tensor, Tensor]:
        """n more steps: x [B, n, D], and the state after the step before them [1, B, D]."""
        states, carry = self.gru(self.norm(x), carry)
        return self.dropout.added(x, states), carry


@dataclass(frozen=True)
class RnnState(State):
    encoder: tuple[Tensor, ...]  # the last state of each layer, [1, B, D]
    decoder: tuple[Tensor, ...]
    memory: Memory | None

    def select(self, rows: Tensor) -> RnnState:
        def taken(carries: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return tuple(carry[:, rows] for carry in carries)

        memory = self.memory and (self.memory[0][rows], self.memory[1][rows])
        return RnnState(taken(self.encoder), taken(self.decoder), memory)


class Rnn(TiedModel):
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
        shared: bool = False,
    ) -> None:
        super().__init__(source_size, target_size, width, shared)
        self.encoder_layers = nn.ModuleList(RecurrentLayer(width, dropout) for _ in range(encoder_layers))
        self.encoder_norm = nn.LayerNorm(width)
        self.decoder_layers = nn.ModuleList(RecurrentLayer(width, dropout) for _ in range(decoder_layers))
        self.attention_norm = nn.LayerNorm(width)
        self.attention = CrossAttention(width, heads)
        self.join = nn.Linear(2 * width, inner)
        self.out = nn.Linear(inner, width)
        self.out_norm = nn.LayerNorm(width)
        self.dropout = Dropout(dropout)
        self.initialise()

    @classmethod
    def build(cls, settings: Any, source_size: int, target_size: int, shared: bool) -> Rnn:
        if settings.encoder != "causal":
            raise UserError(
                f"model.encoder {settings.encoder!r} is only for the Transformer; for an RNN, remove the field"
            )
        return cls(source_size, target_size, **settings.sizes(), shared=shared)

    def initialise(self) -> None:
        super().initialise()
        for module in self.modules():
            if isinstance(module, nn.GRU):
                for name, bias in module.named_parameters():
                    if name.startswith("bias"):
                        nn.init.zeros_(bias)
                    if name.startswith("bias_ih"):
                        # The order is reset, update, new. An update bias of 1 keeps more of the state: faster learning.
                        nn.init.ones_(bias.data[self.width : 2 * self.width])

    # -- training --------------------------------------------------------------------------------------------

    def hidden(self, batch: Batch, g: Tensor) -> Tensor:
        pieces = masks.visible_pieces(batch.source_units, g)  # [B, T]
        mask = AttentionMask.of(masks.first(pieces, batch.source.shape[1])[:, None])  # [B, 1, T, S]
        initial = self.start(batch.size)
        source, _ = self._encode(batch.source, initial.encoder)
        hidden, _ = self._decode(batch.target_in, initial.decoder, self.attention.project_memory(source), mask)
        return hidden

    def _embed(self, embedding: nn.Module, pieces: Tensor) -> Tensor:
        return self.dropout(embedding(pieces) * math.sqrt(self.width))

    def _encode(self, pieces: Tensor, carries: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The states [B, n, D] of the pieces [B, n]."""
        x = self._embed(self.source_embedding, pieces)
        grown = []
        for layer, carry in zip(self.encoder_layers, carries, strict=True):
            x, after = layer(x, carry)
            grown.append(after)
        return self.encoder_norm(x), tuple(grown)

    def _decode(
        self, pieces: Tensor, carries: tuple[Tensor, ...], memory: Memory | None, mask: AttentionMask
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The input of `project`, [B, n, D], after each of the pieces [B, n]."""
        lowest, *upper = self.decoder_layers
        x, after = lowest(self._embed(self.target_embedding, pieces), carries[0])
        grown = [after]
        query = self.attention.project_query(self.attention_norm(x))
        keys = memory or self.attention.project_memory(x[:, :0])  # nothing was read: no keys
        context = self.dropout(self.attention.out_proj(self.attention.combine(query, *keys, mask)))
        x = x + context
        for layer, carry in zip(upper, carries[1:], strict=True):
            x, after = layer(x, carry)
            grown.append(after)
        joined = self.dropout(torch.tanh(self.join(torch.cat((x, context), dim=-1))))
        return self.out_norm(x + self.out(joined)), tuple(grown)

    # -- live ------------------------------------------------------------------------------------------------

    def start(self, size: int = 1) -> RnnState:
        zeros = self.bias.new_zeros(1, size, self.width)
        return RnnState((zeros,) * len(self.encoder_layers), (zeros,) * len(self.decoder_layers), None)

    def read(self, state: State, pieces: Tensor) -> RnnState:
        assert isinstance(state, RnnState)
        if not pieces.shape[1]:
            return state
        states, carries = self._encode(pieces, state.encoder)
        key, value = self.attention.project_memory(states)
        if state.memory is not None:
            key, value = torch.cat((state.memory[0], key), dim=2), torch.cat((state.memory[1], value), dim=2)
        return replace(state, encoder=carries, memory=(key, value))

    def write(self, state: State, previous: Tensor, visible: Tensor | None = None) -> tuple[RnnState, Tensor]:
        assert isinstance(state, RnnState)
        read = state.memory[0].shape[2] if state.memory else 0
        if visible is None:
            visible = torch.full((len(previous),), read, device=previous.device)
        mask = AttentionMask.of(masks.first(visible, read)[:, None, None])  # [B, 1, 1, S]
        hidden, carries = self._decode(previous[:, None], state.decoder, state.memory, mask)
        return replace(state, decoder=carries), self.project(hidden[:, 0])
