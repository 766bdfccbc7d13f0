"""Beginning with the weights of another run, of the same languages or of others.

Between other languages the layers are worth taking all the same: to attend, to copy and to end a sentence need not be
learned again (Zoph et al. 2016; Kocmi and Bojar 2018). Pieces that both vocabularies have keep their vectors.
"""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from stacl import api, checkpoint
from stacl.models.base import Model
from stacl.text import Subwords


def begin_with(model: Model, start: Path, source: Subwords, target: Subwords) -> None:
    """Put the best weights of the run `start` into a model of these vocabularies."""
    tensors = checkpoint.load_model_tensors(start / "model.safetensors")
    own = model.state_dict()
    known_source, known_target = api.load_vocabularies(start)
    for name, ours, theirs in (
        ("source_embedding.weight", source, known_source),
        ("target_embedding.weight", target, known_target),
        ("bias", target, known_target),
    ):
        if ours.pieces != theirs.pieces and name in own and name in tensors:
            tensors[name] = _rows_of_known_pieces(own[name], tensors[name], ours, theirs)
    checkpoint.load_weights(model, tensors, str(start))


def _rows_of_known_pieces(fresh: Tensor, trained: Tensor, ours: Subwords, theirs: Subwords) -> Tensor:
    """One row for each of our pieces: the trained one where there is one."""
    if fresh.shape[1:] != trained.shape[1:]:
        return trained  # refused by its shape, with the name of the weight
    numbers = {piece: number for number, piece in enumerate(theirs.pieces)}
    known = [(number, numbers[piece]) for number, piece in enumerate(ours.pieces) if piece in numbers]
    mixed = fresh.clone()
    mixed[[own for own, _ in known]] = trained[[other for _, other in known]]
    return mixed
