"""The paper's other model: a recurrent encoder and decoder with attention, under any reading policy.

The encoder runs forward only, so what it said of a piece never changes when more is read: one cached pass,
constant cost a word. The decoder begins from zeros, not from the encoder's last state, which would have seen
the whole source: all that it knows of the source comes through attention, over what is visible at its step.

The lowest decoder layer asks the source and the layers above are told the answer (as in GNMT, Wu et al.
2016), instead of feeding the answer back into the lowest (Luong et al. 2015, section 3.3). Then no layer
waits for another one's last step: each runs over all target positions at once, in torch's own kernels, and
training is several times faster, while the upper layers still remember what was asked before. With one
decoder layer it is Luong's model without feeding.

Of the config: `width` is that of states and embeddings, `inner` that of the layer between decoder and
vocabulary, `heads` those of the attention. `encoder = "prefix"` means nothing here, and is refused. B batch,
S source pieces, T target pieces, H heads, D width, d = D/H.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from stacl.models import masks
from stacl.models.attention import CrossAttention, Sight
from stacl.models.base import Model, State
from stacl.models.batch import Batch
from stacl.models.dropout import Dropout
from stacl.support.errors import UserError

Memory = tuple[Tensor, Tensor]  # keys and values of what was read, each [B, H, S, d]


class RecurrentLayer(nn.Module):
    """x + GRU(norm(x)), over all steps at once or a few at a time.

    A GRU, because on a CPU torch's LSTM takes a fifth longer in training and several times as long live.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, carry: Tensor) -> tuple[Tensor, Tensor]:
        """n more steps: [B, n, D], and what the last step before them left, [1, B, D]."""
        states, carry = self.gru(self.norm(x), carry)
        return self.dropout.added(x, states), carry


@dataclass(frozen=True)
class RnnState(State):
    encoder: tuple[Tensor, ...]  # what each layer carries to its next step, [1, B, D]
    decoder: tuple[Tensor, ...]
    memory: Memory | None

    def select(self, rows: Tensor) -> RnnState:
        def taken(carries: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            return tuple(carry[:, rows] for carry in carries)

        memory = self.memory and (self.memory[0][rows], self.memory[1][rows])
        return RnnState(taken(self.encoder), taken(self.decoder), memory)


class Rnn(Model):
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
        shared: bool = False,
    ) -> None:
        super().__init__()
        self.width = width
        self.source_embedding = nn.Embedding(source_size, width)
        self.target_embedding = self.source_embedding if shared else nn.Embedding(target_size, width)
        self.encoder_layers = nn.ModuleList(RecurrentLayer(width, dropout) for _ in range(encoder_layers))
        self.encoder_norm = nn.LayerNorm(width)
        self.decoder_layers = nn.ModuleList(RecurrentLayer(width, dropout) for _ in range(decoder_layers))
        self.attention_norm = nn.LayerNorm(width)
        self.attention = CrossAttention(width, heads)
        self.join = nn.Linear(2 * width, inner)
        self.out = nn.Linear(inner, width)
        self.out_norm = nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(target_size))
        self.dropout = Dropout(dropout)
        self._initialise()

    @classmethod
    def build(cls, settings: Any, source_size: int, target_size: int, shared: bool) -> Rnn:
        if settings.encoder != "causal":
            raise UserError(
                f"model.encoder {settings.encoder!r} is the Transformer's: an RNN reads forward; leave it out"
            )
        return cls(source_size, target_size, **settings.sizes(), shared=shared)

    def _initialise(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
            elif isinstance(module, nn.Embedding):
                nn.init.normal_(module.weight, std=self.width**-0.5)
            elif isinstance(module, nn.GRU):
                for name, bias in module.named_parameters():
                    if name.startswith("bias"):
                        nn.init.zeros_(bias)
                    if name.startswith("bias_ih"):
                        # Gates stand as reset, update, new. One that begins by remembering learns sooner.
                        nn.init.ones_(bias.data[self.width : 2 * self.width])

    # -- training --------------------------------------------------------------------------------------------

    def hidden(self, batch: Batch, g: Tensor) -> Tensor:
        pieces = masks.visible_pieces(batch.source_units, g)  # [B, T]
        sight = Sight.of(masks.first(pieces, batch.source.shape[1])[:, None])  # [B, 1, T, S]
        nothing = self.start(batch.size)
        source, _ = self._encode(batch.source, nothing.encoder)
        hidden, _ = self._decode(batch.target_in, nothing.decoder, self.attention.remember(source), sight)
        return hidden

    def project(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, *self.vocabulary())

    def vocabulary(self) -> tuple[Tensor, Tensor]:
        """Weight [V, D] and bias [V] of `project`, for the loss."""
        return self.target_embedding.weight, self.bias

    def _embed(self, embedding: nn.Module, pieces: Tensor) -> Tensor:
        return self.dropout(embedding(pieces) * math.sqrt(self.width))

    def _encode(self, pieces: Tensor, carries: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """[B, n] pieces -> their states [B, n, D]."""
        x = self._embed(self.source_embedding, pieces)
        grown = []
        for layer, carry in zip(self.encoder_layers, carries, strict=True):
            x, after = layer(x, carry)
            grown.append(after)
        return self.encoder_norm(x), tuple(grown)

    def _decode(
        self, pieces: Tensor, carries: tuple[Tensor, ...], memory: Memory | None, sight: Sight
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """[B, n] pieces after which to go on -> what `project` takes, [B, n, D]."""
        lowest, *upper = self.decoder_layers
        x, after = lowest(self._embed(self.target_embedding, pieces), carries[0])
        grown = [after]
        query = self.attention.ask(self.attention_norm(x))
        keys = memory or self.attention.remember(x[:, :0])  # nothing was read: attention over nothing
        answer = self.dropout(self.attention.out_proj(self.attention.combine(query, *keys, sight)))
        x = x + answer
        for layer, carry in zip(upper, carries[1:], strict=True):
            x, after = layer(x, carry)
            grown.append(after)
        joined = self.dropout(torch.tanh(self.join(torch.cat((x, answer), dim=-1))))
        return self.out_norm(x + self.out(joined)), tuple(grown)

    # -- live ------------------------------------------------------------------------------------------------

    def start(self, size: int = 1) -> RnnState:
        nothing = self.bias.new_zeros(1, size, self.width)
        return RnnState((nothing,) * len(self.encoder_layers), (nothing,) * len(self.decoder_layers), None)

    def read(self, state: State, pieces: Tensor) -> RnnState:
        assert isinstance(state, RnnState)
        if not pieces.shape[1]:
            return state
        states, carries = self._encode(pieces, state.encoder)
        key, value = self.attention.remember(states)
        if state.memory is not None:
            key, value = torch.cat((state.memory[0], key), dim=2), torch.cat((state.memory[1], value), dim=2)
        return replace(state, encoder=carries, memory=(key, value))

    def write(self, state: State, previous: Tensor, visible: Tensor | None = None) -> tuple[RnnState, Tensor]:
        assert isinstance(state, RnnState)
        read = state.memory[0].shape[2] if state.memory else 0
        if visible is None:
            visible = torch.full((len(previous),), read, device=previous.device)
        sight = Sight.of(masks.first(visible, read)[:, None, None])  # [B, 1, 1, S]
        hidden, carries = self._decode(previous[:, None], state.decoder, state.memory, sight)
        return replace(state, decoder=carries), self.project(hidden[:, 0])
