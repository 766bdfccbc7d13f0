"""Warm start: initialise a run with the weights of another run, of the same size or smaller.

The languages may differ. The layers are useful between other languages too: attention, copying and ending a sentence
need not be learned again (Zoph et al. 2016; Kocmi and Bojar 2018). Pieces in both vocabularies keep their embeddings.

A deeper model starts with the same function as the shallower one (as in Chen et al. 2016, Net2Net). Each additional
layer is a copy of a lower one with zero outputs: it adds nothing at first, and learns from the first update. The same
holds for wider feed-forward layers (`model.inner`). Growth is deterministic, so that the weights of two runs that grew
from the same start can be averaged.
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

_OUTPUTS = ("out_proj", "feed.down")  # the projections whose results are added to the residual stream


def warm_start(model: Model, settings: ModelSettings, start: Path, source: Subwords, target: Subwords) -> None:
    """Load the weights of the run `start` into a model of these settings and vocabularies."""
    run = RunFolder(start)
    heads = run.manifest().architecture.heads
    if settings.resolved().heads != heads:  # shapes do not depend on it
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
    """Add units to the feed-forward layers of a Transformer, up to the number in `own`."""
    for name in [name for name in tensors if name.endswith(".feed.up.weight") and name in own]:
        known, more = len(tensors[name]), len(own[name]) - len(tensors[name])
        if more <= 0:
            continue  # the same width, or a wrong shape that load_weights reports
        first = torch.arange(known, known + more) % known
        second = (first + 1 + torch.arange(more) // known) % known
        for inputs in (name, name.replace("weight", "bias")):
            trained = tensors[inputs]
            # A new unit mixes two trained units: an exact copy would learn the same as the original.
            tensors[inputs] = torch.cat([trained, (trained[first] + trained[second]) / 2**0.5])
        outputs = name.replace("up", "down")
        tensors[outputs] = torch.cat([tensors[outputs], tensors[outputs].new_zeros(len(tensors[outputs]), more)], dim=1)


def _depth(tensors: Mapping[str, Tensor], stack: str) -> int:
    return len({name.split(".")[1] for name in tensors if name.startswith(f"{stack}.")})


def _deepen(tensors: dict[str, Tensor], stack: str, depth: int) -> None:
    """Add layers on top of a Transformer stack, up to `depth`."""
    known = _depth(tensors, stack)
    for layer in range(known, depth if known else 0):
        copied = f"{stack}.{layer % known}."  # a different one each time: equal copies would learn the same
        names = [name for name in tensors if name.startswith(copied)]
        outputs = {name for name in names if any(f".{part}." in name for part in _OUTPUTS)}
        if not outputs:
            return  # another model kind, whose layers cannot be zeroed: load_weights reports the missing layer
        for name in names:
            own = f"{stack}.{layer}.{name.removeprefix(copied)}"
            tensors[own] = torch.zeros_like(tensors[name]) if name in outputs else tensors[name].clone()


def _rows_of_known_pieces(fresh: Tensor, trained: Tensor, ours: Subwords, theirs: Subwords) -> Tensor:
    """One row per piece of `ours`: the trained row if `theirs` has the piece, else the fresh one."""
    if fresh.shape[1:] != trained.shape[1:]:
        return trained  # load_weights reports the wrong shape
    numbers = {piece: number for number, piece in enumerate(theirs.pieces)}
    known = [(number, numbers[piece]) for number, piece in enumerate(ours.pieces) if piece in numbers]
    mixed = fresh.clone()
    mixed[[own for own, _ in known]] = trained[[other for _, other in known]]
    return mixed
