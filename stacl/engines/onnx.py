"""The engine for live use: an exported Transformer in ONNX Runtime, with int8 weights and without torch.

export/ makes two graphs. `read` encodes n source pieces to the keys and values of cross-attention. `write` maps one
target piece to logits. Attention appends to the KV cache in place (kv_cache.py), so a step does not copy it.

Time per decoder step in ms, for the model of benchmarks/live.py on a busy machine: this engine 0.45, in float32 0.9,
int8 with separate operators for attention 0.7, numpy with BLAS 2.0 to 2.6, torch 3.5.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from stacl.engines.kv_cache import HIDDEN, KvCache, Sizes
from stacl.support.errors import UserError

READ, WRITE, WEIGHTS = "read.onnx", "write.onnx", "weights.bin"
_SOME_PIECE = 4  # exists in every vocabulary; used to test an engine


class OnnxState(NamedTuple):
    """The progress of B sentences. Later positions of the cache belong to other states.

    It is a tuple to keep Python code short: after each run of a model the processor's caches hold weights, and Python
    is several times slower than usual.
    """

    cache: KvCache
    source: np.ndarray  # [B, S] pieces read
    filled: int  # filled positions of the memory
    written: int  # target pieces fed, including BEGIN
    encoded: np.ndarray | None = None  # for a prefix encoder: [B] pieces of each row that the memory was computed from

    @property
    def read_pieces(self) -> int:
        return int(self.source.shape[1])


class OnnxEngine:
    """Runs an exported model with the interface of decoding/engine.py."""

    def __init__(self, sizes: Sizes, read: Any, write: Any) -> None:
        self.sizes = sizes
        self._read, self._write = read, write
        self._prefix = sizes.encoder == "prefix"
        self._positions = positions(512, sizes.width)
        self._paired = False
        self._paired = sizes.precision == "int8" and self._rounds_single_row_differently()

    @classmethod
    def load(cls, folder: Path, sizes: Sizes, threads: int = 1) -> OnnxEngine:
        """Load the graphs of an exported folder. Its checksums must have been verified."""
        runtime = _runtime()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        read, write = (
            runtime.InferenceSession(folder / name, options, providers=["CPUExecutionProvider"])
            for name in (READ, WRITE)
        )
        return cls(sizes, read, write)

    def start(self, size: int = 1) -> OnnxState:
        cache = KvCache(self.sizes, self._read, self._write, size, paired=self._paired)
        encoded = np.zeros(size, dtype=np.int64) if self._prefix else None
        return OnnxState(cache, np.zeros((size, 0), dtype=np.int64), 0, 0, encoded)

    def _rounds_single_row_differently(self) -> bool:
        """Whether a single row gets other logits than the same row in a batch, as on processors with AVX-512.

        Without padding, a live session would then write other words than a batch.
        """

        def logits(size: int) -> np.ndarray:
            state = self.read(self.start(size), np.full((size, 1), _SOME_PIECE))
            _, found = self.write(state, np.full(size, _SOME_PIECE), np.ones(size, dtype=np.int64))
            return np.asarray(found[0])

        return not np.array_equal(logits(1), logits(2))

    def read(self, state: OnnxState, pieces: np.ndarray) -> OnnxState:
        state = state._replace(source=np.concatenate((state.source, pieces), axis=1))
        # Causal: encode at once, so that the first target word does not wait for the whole prefix.
        return state if self._prefix else self._caught_up(state)

    def write(
        self, state: OnnxState, previous: np.ndarray, visible: np.ndarray | None = None
    ) -> tuple[OnnxState, np.ndarray]:
        if self._prefix:
            state = self._refreshed(state, visible)
        written = state.written
        cache = state.cache.with_room(state.filled, written, target=1)
        cache.show(state.read_pieces if visible is None else np.asarray(visible))
        logits = cache.decode(previous, self._position(written, written + 1), written)
        return OnnxState(cache, state.source, state.filled, written + 1, state.encoded), logits

    def _caught_up(self, state: OnnxState) -> OnnxState:
        """Causal: encode the pieces that were read and are not encoded yet."""
        read, before, cache = state.read_pieces, state.filled, state.cache
        while before < read:
            # One piece per run. Several at once are rounded differently, and int8 amplifies the difference: a live
            # session would write other words than a batch, which has the whole source at once.
            after = before + 1
            cache = cache.with_room(before, state.written, source=1)
            cache.encode(state.source[:, before:after], self._position(before, after), before)
            before = after
        return OnnxState(cache, state.source, read, state.written)

    def _refreshed(self, state: OnnxState, visible: np.ndarray | None) -> OnnxState:
        """Prefix: encode the rows again whose prefix has grown."""
        shown = np.full(len(state.source), state.read_pieces) if visible is None else np.asarray(visible)
        assert state.encoded is not None
        stale = np.flatnonzero(state.encoded != shown)
        if not len(stale):
            return state
        longest = int(shown[stale].max())
        seen = np.arange(longest) < shown[stale, None]
        feed = {
            "pieces": np.ascontiguousarray(state.source[stale, :longest]),
            "positions": self._position(0, longest),
            "mask": np.where(seen, np.float32(0), HIDDEN)[:, None, None],
        }
        memory = self._read.run(("memory",), feed)[0]  # [2L, B, H, n, d]
        filled = max(state.filled, longest)
        cache = state.cache.copied(state.filled, state.written, source=filled - state.filled)
        cache.memory[:, stale, :, :longest] = memory
        return OnnxState(cache, state.source, filled, state.written, shown)

    def select(self, state: OnnxState, rows: np.ndarray) -> OnnxState:
        chosen = np.asarray(rows)
        cache = state.cache.copied(state.filled, state.written, rows=chosen)
        encoded = None if state.encoded is None else state.encoded[chosen]
        return OnnxState(cache, state.source[chosen], state.filled, state.written, encoded)

    def _position(self, start: int, end: int) -> np.ndarray:
        if end > len(self._positions):
            self._positions = positions(2 * end, self.sizes.width)
        return self._positions[start:end]


def positions(count: int, width: int) -> np.ndarray:
    """Return sinusoidal positions as in models/transformer.py: [count, D]."""
    half = width // 2
    rates = np.exp(np.arange(half, dtype=np.float32) * np.float32(-math.log(10_000.0) / max(1, half - 1)))
    angles = np.arange(count, dtype=np.float32)[:, None] * rates
    table = np.zeros((count, width), dtype=np.float32)
    table[:, : 2 * half] = np.concatenate((np.sin(angles), np.cos(angles)), axis=1)
    return table


def _runtime() -> Any:
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise UserError("onnxruntime is not installed; install stacl[serve]") from None
    except ImportError as error:  # it is installed, but broken or built for another machine
        raise UserError(f"onnxruntime cannot be loaded: {error}") from None
    return onnxruntime
