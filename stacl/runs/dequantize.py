"""Converts an exported model back to trainable weights: the inverse of export/graphs.py.

This allows a warm start from a shipped model (`model.start = "de-en"`). Weights of a float32 export are restored up to
rounding. Weights of an int8 export are restored within half a step of their block, which a few updates correct.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from stacl.engines.kv_cache import Sizes
from stacl.engines.onnx import READ, WRITE
from stacl.runs import checkpoint, exported
from stacl.runs.folder import RunFolder
from stacl.support.errors import UserError

_QUERIES = ("in_proj", "query_proj")  # in these, the first D rows were divided by sqrt(d)


def trained_tensors(run: RunFolder) -> dict[str, Tensor]:
    """Return the weights of a run folder. If it has none, use those that were exported into it."""
    if run.weights.exists() or not run.exported.is_dir():
        return checkpoint.load_model(run.weights)[0]
    sizes, _ = exported.verified(run.exported)
    return {name: torch.from_numpy(array) for name, array in _dequantized_weights(_stored(run.exported), sizes).items()}


def _stored(folder: Path) -> dict[str, np.ndarray]:
    """Return the arrays of both graphs as they are stored."""
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError:
        raise UserError(f"a warm start from {folder.parent} requires onnx; install stacl[export]") from None
    graphs = [onnx.load(folder / name).graph for name in (READ, WRITE)]
    return {each.name: numpy_helper.to_array(each) for graph in graphs for each in graph.initializer}


def _dequantized_weights(stored: dict[str, np.ndarray], sizes: Sizes) -> dict[str, np.ndarray]:
    """Return the weights of the model by name."""
    found = {}
    for name, array in stored.items():
        owner, _, kind = name.rpartition(".")
        if kind == "weight":
            found[name] = _dequantized(array, stored.get(f"{name}.scales"))
        elif kind == "bias":
            found[f"{owner.removesuffix('.weight')}.bias"] = array.copy()
    # A shared vocabulary is stored once. The output projection is the target embedding.
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
    """Convert [N, K/block, block] in 8 bits around 128 and scales [N, K/block] to [N, K]. Copy float32."""
    if scales is None:
        return array.copy()
    centred: np.ndarray = array.astype(np.float32) - np.float32(128)
    centred *= scales.reshape(len(array), -1, 1)
    return centred.reshape(len(array), -1)
