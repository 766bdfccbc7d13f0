"""Builds the ONNX graphs of an exported Transformer from its weights. engines/onnx.py runs them.

Both graphs use one file of weights, so shared weights (the embedding, which is also the output projection) are stored
once. int8 uses `MatMulNBits` with a scale per block of inputs. The older `MatMulInteger` with all 8 bits overflows on
AVX2 without VNNI.

B batch, n new pieces, H heads, d = D / H, L layers. The weights of queries are divided by sqrt(d).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from stacl.engines.kv_cache import Sizes, cache_names, grown_name
from stacl.engines.onnx import WEIGHTS

LARGEST_BLOCK, SMALLEST_BLOCK = 128, 16  # 128 is 10 % faster than 32, with the same BLEU within noise
_ALIGNED = 64
_FUSED = "com.microsoft"  # ONNX Runtime's own operators
_OPSETS = (("", 21), (_FUSED, 1))
Tensors = Mapping[str, np.ndarray]


class Weights:
    """One file of raw arrays. Each array is stored once."""

    def __init__(self) -> None:
        self._places: dict[str, TensorProto] = {}
        self._content = bytearray()

    def place(self, name: str, array: np.ndarray) -> TensorProto:
        """Return a graph initializer that points to this array in the file."""
        if name not in self._places:
            self._content += bytes(-len(self._content) % _ALIGNED)
            raw = np.ascontiguousarray(array).tobytes()
            place = TensorProto(
                name=name,
                dims=array.shape,
                data_type=helper.np_dtype_to_tensor_dtype(array.dtype),
                data_location=TensorProto.EXTERNAL,
            )
            for key, value in (("location", WEIGHTS), ("offset", len(self._content)), ("length", len(raw))):
                place.external_data.add(key=key, value=str(value))
            self._content += raw
            self._places[name] = place
        return self._places[name]

    def again(self, name: str, placed: str, shape: tuple[int, ...]) -> TensorProto:
        """Return another initializer that points to an array that is already stored."""
        twin = TensorProto()
        twin.CopyFrom(self._places[placed])
        twin.name, twin.dims[:] = name, shape
        return twin

    def save(self, folder: Path) -> None:
        (folder / WEIGHTS).write_bytes(self._content)


def block_of(depth: int) -> int:
    """Return how many of the K inputs share a scale: the largest power of two that divides K, or 0."""
    block = min(LARGEST_BLOCK, depth & -depth)
    return block if block >= SMALLEST_BLOCK else 0


def quantized(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise [N, K] to [N, K/block, block] in 8 bits around 128, and scales [N, K/block]."""
    blocks = weight.reshape(len(weight), -1, block_of(weight.shape[1])).astype(np.float32)
    scales = np.abs(blocks).max(-1) / np.float32(127)
    whole = np.rint(blocks / np.where(scales > 0, scales, np.float32(1))[..., None])
    return (whole + 128).astype(np.uint8), scales


class Graph:
    """A graph under construction: nodes in order of execution, with numbered names."""

    def __init__(self, sizes: Sizes, tensors: Tensors, weights: Weights) -> None:
        self.sizes, self.tensors, self.weights = sizes, tensors, weights
        self.depth = sizes.width // sizes.heads
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._initializers: dict[str, TensorProto] = {}

    def node(self, kind: str, *inputs: str, domain: str = "", output: str = "", **attributes: Any) -> str:
        outputs = [output or f"{kind}.{len(self._nodes)}"]
        return self.nodes(kind, *inputs, outputs=outputs, domain=domain, **attributes)[0]

    def nodes(self, kind: str, *inputs: str, outputs: list[str], domain: str = "", **attributes: Any) -> list[str]:
        self._nodes.append(helper.make_node(kind, inputs, outputs, domain=domain, **attributes))
        return outputs

    def input(self, name: str, kind: int, *shape: str | int) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, *shape: str | int) -> None:
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def constant(self, value: Any) -> str:
        """Add a small array that is not a weight."""
        array = np.asarray(value)
        name = f"constant.{array.dtype}.{array.ravel().tolist()}.{array.ndim}"
        self._initializers[name] = numpy_helper.from_array(array, name)
        return name

    def weight(self, name: str, array: np.ndarray | None = None) -> str:
        self._initializers[name] = self.weights.place(name, self.tensors[name] if array is None else array)
        return name

    def reshaped(self, name: str, weight: str, shape: tuple[int, ...]) -> str:
        """Use a stored weight with another shape."""
        self._initializers[name] = self.weights.again(name, weight, shape)
        return name

    def finish(self) -> onnx.ModelProto:
        graph = helper.make_graph(self._nodes, "stacl", self._inputs, self._outputs, list(self._initializers.values()))
        opsets = [helper.make_opsetid(*opset) for opset in _OPSETS]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="stacl")

    # -- parts of a Transformer ------------------------------------------------------------------------------

    def product(self, x: str, name: str, weight: np.ndarray, bias: np.ndarray, output: str = "") -> str:
        """Multiply x by the transpose of weight [N, K], and add bias [N]."""
        bias_name = self.weight(f"{name}.bias", bias)
        if self.sizes.precision == "float32":
            flat = self.node("FusedMatMul", x, self.weight(name, weight), domain=_FUSED, transB=1)
            return self.node("Add", flat, bias_name, output=output)
        whole, scales = quantized(weight)
        operands = (self.weight(name, whole), self.weight(f"{name}.scales", scales), "", "", bias_name)
        size, depth = weight.shape
        how = {"N": size, "K": depth, "block_size": block_of(depth), "bits": 8, "accuracy_level": 4}
        return self.node("MatMulNBits", x, *operands, domain=_FUSED, output=output, **how)

    def linear(self, x: str, name: str) -> str:
        return self.product(x, f"{name}.weight", self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"])

    def embedded(self, pieces: str, table: str, positions: str) -> str:
        """Embed pieces [B, n] and add positions: [B, n, D]."""
        if self.sizes.precision == "float32":
            x = self.node("Gather", self.weight(table), pieces)
        else:
            whole, scales = quantized(self.tensors[table])
            self.weight(table, whole)
            rows = self.reshaped(f"{table}.rows", table, self.tensors[table].shape)
            how = {"bits": 8, "block_size": whole.shape[2], "gather_axis": 0, "quantize_axis": 1}
            operands = (rows, pieces, self.weight(f"{table}.scales", scales))
            x = self.node("GatherBlockQuantized", *operands, domain=_FUSED, **how)
        scale = self.constant(np.float32(math.sqrt(self.sizes.width)))
        return self.node("Add", self.node("Mul", x, scale), positions)

    def norm(self, x: str, name: str, change: str = "") -> tuple[str, str]:
        """Return x + change normalised, and x + change."""
        scale, shift = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        if not change:
            return self.node("LayerNormalization", x, scale, shift, epsilon=1e-5), x
        outputs = [f"{name}.normalised", "", "", f"{name}.sum"]
        self.nodes("SkipLayerNormalization", x, change, scale, shift, outputs=outputs, domain=_FUSED, epsilon=1e-5)
        return outputs[0], outputs[3]

    def queries(self, x: str, name: str) -> str:
        """Return a product whose first D rows are queries, divided by sqrt(d). Keys and values may follow."""
        weight, bias = self.tensors[f"{name}.weight"].copy(), self.tensors[f"{name}.bias"].copy()
        for array in (weight, bias):
            array[: self.sizes.width] /= math.sqrt(self.depth)
        return self.product(x, f"{name}.weight", weight, bias)

    def cached_attention(self, x: str, name: str, key: str, value: str) -> str:
        """Causal self-attention of x [B, n, D]. Its keys and values are appended to the caches."""
        outputs = [f"{name}.heard", grown_name(key), grown_name(value)]
        operands = (self.queries(x, f"{name}.in_proj"), "", "", key, value, "last", "total")
        heads = {"num_heads": self.sizes.heads, "kv_num_heads": self.sizes.heads, "scale": 1.0}
        self.nodes("GroupQueryAttention", *operands, outputs=outputs, domain=_FUSED, **heads)
        return self.linear(outputs[0], f"{name}.out_proj")

    def prefix_attention(self, x: str, name: str) -> str:
        """Bidirectional self-attention of x [B, n, D] under the mask."""
        heads = self.sizes.heads
        split = self.constant(np.array([0, 0, 3 * heads, self.depth]))
        flat = self.node("Reshape", self.queries(x, f"{name}.in_proj"), split)
        names = [f"{name}.{what}" for what in ("query", "key", "value")]
        swapped = self.node("Transpose", flat, perm=[0, 2, 1, 3])  # [B, 3H, n, d]
        query, key, value = self.nodes("Split", swapped, outputs=names, axis=1, num_outputs=3)
        attended = self.node("Transpose", self.attend(query, key, value, "mask"), perm=[0, 2, 1, 3])
        return self.linear(self.merged(attended), f"{name}.out_proj")

    def attend(self, query: str, key: str, value: str, mask: str) -> str:
        scores = self.node("FusedMatMul", query, key, domain=_FUSED, transB=1)
        return self.node("MatMul", self.node("Softmax", self.node("Add", scores, mask), axis=-1), value)

    def merged(self, x: str) -> str:
        return self.node("Reshape", x, self.constant(np.array([0, -1, self.sizes.width])))

    def cross_attention(self, x: str, name: str, key: str, value: str) -> str:
        """Cross-attention of x [B, 1, D]. It is zero where no source is visible."""
        split = self.constant(np.array([0, self.sizes.heads, 1, self.depth]))
        query = self.node("Reshape", self.queries(x, f"{name}.query_proj"), split)
        attended = self.merged(self.attend(query, key, value, "source_mask"))
        return self.linear(self.node("Mul", attended, "hears"), f"{name}.out_proj")

    def feed(self, x: str, name: str) -> str:
        return self.linear(self.node("Relu", self.linear(x, f"{name}.up")), f"{name}.down")

    def begin(self, table: str) -> str:
        """Add the inputs that both graphs have, and return the embedded pieces."""
        self.input("pieces", TensorProto.INT64, "B", "n")
        self.input("positions", TensorProto.FLOAT, "n", self.sizes.width)
        return self.embedded("pieces", table, "positions")

    def caches(self, owner: str, layers: int, grow: bool) -> list[str]:
        names = cache_names(owner, layers)
        shape = ("B", self.sizes.heads, owner, self.depth)
        for name in names:
            self.input(name, TensorProto.FLOAT, *shape)
            if grow:
                self.output(grown_name(name), *shape)
        return names

    def lengths(self) -> None:
        """Add the inputs for filled positions after this run: the last position of each row, and the total."""
        self.input("last", TensorProto.INT32, "B")
        self.input("total", TensorProto.INT32)


def reading(sizes: Sizes, tensors: Tensors, weights: Weights) -> onnx.ModelProto:
    """Build the graph from pieces [B, n] to memory [2L, B, H, n, d], the keys and values for cross-attention."""
    graph = Graph(sizes, tensors, weights)
    x = graph.begin("source_embedding.weight")
    if sizes.encoder == "causal":
        graph.lengths()
        caches = graph.caches("encoder", sizes.encoder_layers, grow=True)
    else:
        graph.input("mask", TensorProto.FLOAT, "B", 1, 1, "n")
        caches = []
    change = ""
    for layer in range(sizes.encoder_layers):
        name = f"encoder_layers.{layer}"
        normal, x = graph.norm(x, f"{name}.attention_norm", change)
        if caches:
            change = graph.cached_attention(normal, f"{name}.attention", *caches[2 * layer : 2 * layer + 2])
        else:
            change = graph.prefix_attention(normal, f"{name}.attention")
        normal, x = graph.norm(x, f"{name}.feed_norm", change)
        change = graph.feed(normal, f"{name}.feed")
    states, _ = graph.norm(x, "encoder_norm", change)
    # One product computes the keys and values of all decoder layers.
    parts = [f"decoder_layers.{layer}.cross_attention.memory_proj" for layer in range(sizes.decoder_layers)]
    weight = np.concatenate([tensors[f"{part}.weight"] for part in parts])
    bias = np.concatenate([tensors[f"{part}.bias"] for part in parts])
    flat = graph.product(states, "memory_proj.weight", weight, bias)  # [B, n, 2L * D]
    shape = (2 * sizes.decoder_layers, sizes.heads, graph.depth)
    split = graph.node("Reshape", flat, graph.constant(np.array([0, 0, *shape])))
    graph.node("Transpose", split, perm=[2, 0, 3, 1, 4], output="memory")
    graph.output("memory", shape[0], "B", shape[1], "n", shape[2])
    return graph.finish()


def writing(sizes: Sizes, tensors: Tensors, weights: Weights) -> onnx.ModelProto:
    """Build the graph from pieces [B, 1] to logits [B, 1, V]."""
    graph = Graph(sizes, tensors, weights)
    table = "target_embedding.weight"
    if np.array_equal(tensors[table], tensors["source_embedding.weight"]):
        table = "source_embedding.weight"  # a shared vocabulary is stored once
    x = graph.begin(table)
    graph.lengths()
    graph.input("source_mask", TensorProto.FLOAT, "B", 1, 1, "memory")
    graph.input("hears", TensorProto.FLOAT, "B", 1, 1)
    caches = graph.caches("decoder", sizes.decoder_layers, grow=True)
    memory = graph.caches("memory", sizes.decoder_layers, grow=False)
    change = ""
    for layer in range(sizes.decoder_layers):
        name, places = f"decoder_layers.{layer}", slice(2 * layer, 2 * layer + 2)
        normal, x = graph.norm(x, f"{name}.self_norm", change)
        change = graph.cached_attention(normal, f"{name}.self_attention", *caches[places])
        normal, x = graph.norm(x, f"{name}.cross_norm", change)
        change = graph.cross_attention(normal, f"{name}.cross_attention", *memory[places])
        normal, x = graph.norm(x, f"{name}.feed_norm", change)
        change = graph.feed(normal, f"{name}.feed")
    states, _ = graph.norm(x, "decoder_norm", change)
    graph.product(states, table, tensors[table], tensors["bias"], output="logits")
    graph.output("logits", "B", 1, sizes.pieces)
    return graph.finish()
