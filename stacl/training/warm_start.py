"""Beginning with the weights of another run, of the same languages or of others, of the same size or a smaller one.

Between other languages the layers are worth taking all the same: to attend, to copy and to end a sentence need not be
learned again (Zoph et al. 2016; Kocmi and Bojar 2018). Pieces that both vocabularies have keep their vectors.

A deeper model begins by saying what the shallower one says: a layer too many is a copy of one below whose outputs are
zero, so that it adds nothing yet (as in Chen et al. 2016, Net2Net) and learns from its first update on. So does a model
whose feed-forward layers are wider (`model.inner`). Nothing of it is drawn by chance: the same beginning grows in the
same way in every run, or else the mean of two runs that grew would be no model.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from stacl.config import ModelSettings
from stacl.models.base import Model
from stacl.runs import checkpoint
from stacl.runs.dequantize import trained_tensors
from stacl.runs.folder import RunFolder
from stacl.support.errors import UserError
from stacl.text.subwords import Subwords

_OUTPUTS = ("out_proj", "feed.down")  # by which a layer adds to what passes through it


def warm_start(model: Model, settings: ModelSettings, start: Path, source: Subwords, target: Subwords) -> None:
    """Put the weights of the model `start` into a model of these settings and vocabularies."""
    run = RunFolder(start)
    heads = run.manifest().architecture.heads
    if settings.resolved().heads != heads:  # which no shape would tell
        raise UserError(f"model.heads must be {heads}, as in {start}, not {settings.resolved().heads}")
    tensors = trained_tensors(run)
    own = model.state_dict()
    known_source, known_target = run.vocabularies()
    for name, ours, theirs in (
        ("source_embedding.weight", source, known_source),
        ("target_embedding.weight", target, known_target),
        ("bias", target, known_target),
    ):
        if ours.pieces != theirs.pieces and name in own and name in tensors:
            tensors[name] = _rows_of_known_pieces(own[name], tensors[name], ours, theirs)
    _widen(tensors, own)
    for stack in ("encoder_layers", "decoder_layers"):
        _deepen(tensors, stack, _depth(own, stack))
    checkpoint.load_weights(model, tensors, str(start))


def _widen(tensors: dict[str, Tensor], own: Mapping[str, Tensor]) -> None:
    """Units in a Transformer's feed-forward layers until there are as many as in ours."""
    for name in [name for name in tensors if name.endswith(".feed.up.weight") and name in own]:
        known, more = len(tensors[name]), len(own[name]) - len(tensors[name])
        if more <= 0:
            continue  # as it is, or refused by its shape
        first = torch.arange(known, known + more) % known
        second = (first + 1 + torch.arange(more) // known) % known
        for listening in (name, name.replace("weight", "bias")):
            trained = tensors[listening]
            # A new unit listens for what two of the known listen for: the copy of one would learn the same as that.
            tensors[listening] = torch.cat([trained, (trained[first] + trained[second]) / 2**0.5])
        spoken = name.replace("up", "down")
        tensors[spoken] = torch.cat([tensors[spoken], tensors[spoken].new_zeros(len(tensors[spoken]), more)], dim=1)


def _depth(tensors: Mapping[str, Tensor], stack: str) -> int:
    return len({name.split(".")[1] for name in tensors if name.startswith(f"{stack}.")})


def _deepen(tensors: dict[str, Tensor], stack: str, wanted: int) -> None:
    """Layers on top of a Transformer's until there are as many as wanted."""
    known = _depth(tensors, stack)
    for layer in range(known, wanted if known else 0):
        copied = f"{stack}.{layer % known}."  # not all of the same one: twins would learn the same
        names = [name for name in tensors if name.startswith(copied)]
        outputs = {name for name in names if any(f".{part}." in name for part in _OUTPUTS)}
        if not outputs:
            return  # of another kind, whose layers cannot be silenced: refused for want of the layer
        for name in names:
            own = f"{stack}.{layer}.{name.removeprefix(copied)}"
            tensors[own] = torch.zeros_like(tensors[name]) if name in outputs else tensors[name].clone()


def _rows_of_known_pieces(fresh: Tensor, trained: Tensor, ours: Subwords, theirs: Subwords) -> Tensor:
    """One row for each of our pieces: the trained one where there is one."""
    if fresh.shape[1:] != trained.shape[1:]:
        return trained  # refused by its shape, with the name of the weight
    numbers = {piece: number for number, piece in enumerate(theirs.pieces)}
    known = [(number, numbers[piece]) for number, piece in enumerate(ours.pieces) if piece in numbers]
    mixed = fresh.clone()
    mixed[[own for own, _ in known]] = trained[[other for _, other in known]]
    return mixed
