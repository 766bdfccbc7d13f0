"""Saves and loads models and checkpoints: atomically, with checksums, without pickle (safetensors and JSON).

A checkpoint such as checkpoints/00000500/ has the weights, the optimizer state, and state.json with checksums. The
layout of a run folder is in runs/folder.py.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from stacl.support.errors import UserError
from stacl.support.files import checksum, remove, write_atomically

FORMAT = 1
KEPT_CHECKPOINTS = 2  # the newest, and the one before it in case the newest is damaged
_STATE, _WEIGHTS, _OPTIMIZER = "state.json", "weights.safetensors", "optimizer.safetensors"


def save_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    path.touch()  # with ordinary permissions: safetensors would make the file private
    mode = path.stat().st_mode
    # Tied weights are one tensor under two names. safetensors needs a copy for each name.
    try:
        save_file({name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}, path, metadata)
    except SafetensorError as error:  # safetensors reports disk errors this way
        full = f"os error {errno.ENOSPC}" in str(error)
        raise OSError(errno.ENOSPC if full else errno.EIO, str(error)) from None
    path.chmod(mode)


def _check_readable(path: Path) -> None:
    """Raise a UserError if the file may not be read. safetensors would report it as damaged or missing."""
    try:
        path.open("rb").close()
    except PermissionError:
        raise UserError(f"{path} cannot be read: permission denied") from None
    except OSError:
        pass  # reported where it is opened next


def load_tensors(path: Path) -> dict[str, Tensor]:
    _check_readable(path)
    try:
        return load_file(path)
    except FileNotFoundError:
        raise UserError(f"{path} does not exist") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged or not a safetensors file: {error}") from None


def load_weights(model: torch.nn.Module, tensors: dict[str, Tensor], name: str) -> None:
    """Load weights into a model. Names and shapes must match exactly."""
    own = model.state_dict()
    missing = sorted(own.keys() - tensors.keys())
    unknown = sorted(tensors.keys() - own.keys())
    wrong = [key for key in own.keys() & tensors.keys() if own[key].shape != tensors[key].shape]
    for keys, what in (
        (missing, "lacks"),
        (unknown, "has an unknown tensor"),
        (sorted(wrong), "has a different shape of"),
    ):
        if keys:
            raise UserError(f"{name} does not belong to this model: it {what} {keys[0]}")
    model.load_state_dict(tensors)


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return the moments and step counts of Adam under flat names."""
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": value for index, entry in state.items() for name, value in entry.items()}


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for flat, value in tensors.items():
        index, name = flat.split(".")
        state.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def save_checkpoint(
    folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, progress: dict[str, Any]
) -> None:
    """Save a checkpoint in `folder`, named by its step. Only the last KEPT_CHECKPOINTS remain."""

    def write(partial: Path) -> None:
        partial.mkdir()
        save_tensors(partial / _WEIGHTS, model.state_dict())
        save_tensors(partial / _OPTIMIZER, optimizer_tensors(optimizer))
        sums = {file.name: checksum(file) for file in sorted(partial.iterdir())}
        state = {"format": FORMAT, "progress": progress, "checksums": sums}
        (partial / _STATE).write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")

    write_atomically(folder / f"{progress['step']:08d}", write)
    for old in checkpoints(folder)[:-KEPT_CHECKPOINTS]:
        remove(old)


def checkpoints(folder: Path) -> list[Path]:
    """Return the complete checkpoints, oldest first."""
    found = folder.iterdir() if folder.is_dir() else ()
    return sorted(path for path in found if path.is_dir() and path.name.isdigit())


def load_checkpoint(path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Load model and optimizer, and return the progress. A damaged checkpoint changes neither."""
    try:
        state = json.loads((path / _STATE).read_text(encoding="utf-8"))
        version, sums, progress = state["format"], state["checksums"], state["progress"]
        if not (isinstance(sums, dict) and isinstance(progress, dict)):
            raise TypeError(f"checksums and progress of {_STATE} must be objects")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged or not a stacl checkpoint: {error}") from None
    if version != FORMAT:
        raise UserError(f"{path} was written by another version of stacl (format {version}, this one reads {FORMAT})")
    for name in (_WEIGHTS, _OPTIMIZER):
        _check_readable(path / name)
        if not (path / name).is_file() or checksum(path / name) != sums.get(name):
            raise UserError(f"{path}/{name} is damaged; remove {path} to resume from the previous checkpoint")
    weights = load_tensors(path / _WEIGHTS)
    moments = load_tensors(path / _OPTIMIZER)
    load_weights(model, weights, str(path))
    load_optimizer(optimizer, moments)
    return progress


def tensors_checksum(tensors: dict[str, Tensor]) -> str:
    """Return a checksum of names, types, shapes and values. It does not depend on the file format."""
    total = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        total.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        total.update(tensor.flatten().view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def save_model(path: Path, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
    """Save a model. Its checksum and facts are in the same file, so a kill cannot separate them."""
    metadata = {"stacl": json.dumps({"format": FORMAT, "checksum": tensors_checksum(tensors), **facts})}
    write_atomically(path, lambda partial: save_tensors(partial, tensors, metadata))


def model_facts(path: Path) -> dict[str, Any]:
    """Return the facts that were saved with a model, without loading its weights."""
    with _saved_model(path) as (facts, _):
        return facts


def load_model(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return the weights and the facts of a saved model, and verify the checksum.

    The file is opened only once, because training may replace it at any time.
    """
    with _saved_model(path) as (facts, file):
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
    if tensors_checksum(tensors) != facts.get("checksum"):
        raise UserError(f"{path} is damaged: the checksum of its weights does not match")
    return tensors, facts


@contextlib.contextmanager
def _saved_model(path: Path) -> Iterator[tuple[dict[str, Any], Any]]:
    """Open a saved model, and yield its facts and the file."""
    _check_readable(path)
    if not path.is_file():
        raise UserError(f"no model file {path}")
    try:
        with safe_open(path, framework="pt") as file:
            yield dict(json.loads((file.metadata() or {})["stacl"])), file
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged or not a stacl model: {error}") from None


def average(sets: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of several sets of weights, summed in double precision."""
    total: dict[str, Tensor] = {}
    count = 0
    for weights in sets:
        count += 1
        for name, tensor in weights.items():
            total[name] = total[name] + tensor.double() if name in total else tensor.double()
    return {name: (tensor / count).float() for name, tensor in total.items()}
