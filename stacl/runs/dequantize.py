"""From the files of the fast engine back to weights that training can go on from: what graphs.py did, undone.

So a shipped model is a beginning too (`model.start = "de-en"`). Of a float32 export the weights come back but for a
rounding; of an int8 one each comes back within half a step of its block, which a few updates mend.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from stacl.runs import checkpoint
from stacl.engines import onnx as engine
from stacl.engines.kv_cache import Sizes
from stacl.support.errors import UserError

_QUERIES = ("in_proj", "query_proj")  # whose first D rows were divided by sqrt(d)


def trained_tensors(folder: Path) -> dict[str, Tensor]:
    """The weights of a run folder or, where it has none, those that were exported into it."""
    weights, exported = folder / "model.safetensors", folder / engine.FOLDER
    if weights.exists() or not exported.is_dir():
        return checkpoint.load_model(weights)[0]
    sizes, _ = engine.verified(exported)
    return {name: torch.from_numpy(array) for name, array in _undone(_stored(exported), sizes).items()}


def _stored(exported: Path) -> dict[str, np.ndarray]:
    """The arrays of both graphs, as they are stored."""
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError:
        raise UserError(f"{exported.parent} is exported: to begin with it, install stacl[export]") from None
    graphs = [onnx.load(exported / name).graph for name in (engine.READ, engine.WRITE)]
    return {each.name: numpy_helper.to_array(each) for graph in graphs for each in graph.initializer}


def _undone(stored: dict[str, np.ndarray], sizes: Sizes) -> dict[str, np.ndarray]:
    """The names and values of the model's own weights."""
    found = {}
    for name, array in stored.items():
        owner, _, kind = name.rpartition(".")
        if kind == "weight":
            found[name] = _dequantized(array, stored.get(f"{name}.scales"))
        elif kind == "bias":
            found[f"{owner.removesuffix('.weight')}.bias"] = array.copy()
    # One vocabulary for both languages is stored once; the output projection is the embedding of the target.
    side = "target" if "target_embedding.weight" in found else "source"
    found["target_embedding.weight"] = found[f"{side}_embedding.weight"]
    found["bias"] = found.pop(f"{side}_embedding.bias")
    for name, array in found.items():
        if any(f".{part}." in name for part in _QUERIES):
            array[: sizes.width] *= math.sqrt(sizes.width // sizes.heads)
    for kind in ("weight", "bias"):
        for layer, part in enumerate(np.split(found.pop(f"memory_proj.{kind}"), sizes.decoder_layers)):
            found[f"decoder_layers.{layer}.cross_attention.memory_proj.{kind}"] = part
    return found


def _dequantized(array: np.ndarray, scales: np.ndarray | None) -> np.ndarray:
    """[N, K/block, block] in 8 bits around 128, and the scales [N, K/block] -> [N, K]; float32 as it is."""
    if scales is None:
        return array.copy()
    whole = array.astype(np.float32) - np.float32(128)
    return (whole * scales.reshape(len(array), -1, 1)).reshape(len(array), -1)
