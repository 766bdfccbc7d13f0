"""The KV cache of B sentences: arrays with spare room, bound once to the ONNX graphs.

States that follow from one another share a cache. Each state owns the first positions of the cache, and later positions
are free until a state claims them. If a second state needs the same position, it gets a copy, so states are immutable.

B batch, H heads, C positions, d = D / H, L layers.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

HIDDEN = np.float32(-1e9)  # added to a score: the attention weight is exactly 0, and not NaN where everything is masked
_ROOM = 16  # initial positions, and the step of growth: a server has many open sentences, and most are short


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model that the cache depends on."""

    encoder: str  # causal or prefix
    precision: str
    pieces: int  # of the target vocabulary
    width: int
    heads: int
    encoder_layers: int
    decoder_layers: int


def cache_names(owner: str, layers: int) -> list[str]:
    """Return the names of the cache arrays in the graphs."""
    return [f"{owner}.{layer}.{what}" for layer in range(layers) for what in ("key", "value")]


def grown_name(cache: str) -> str:
    """Return the name of a cache after the graph has appended to it. It is bound to the same memory."""
    return f"{cache}.grown"


class KvCache:
    """The arrays `encoder`, `memory` (keys and values for cross-attention) and `decoder`, each [2L, B, H, C, d]."""

    def __init__(
        self,
        sizes: Sizes,
        read: Any,
        write: Any,
        rows: int,
        source_room: int = _ROOM,
        target_room: int = _ROOM,
        *,
        paired: bool = False,
    ) -> None:
        self._sizes, self._read, self._write = sizes, read, write
        self.rows, self.source_room, self.target_room = rows, source_room, target_room
        # Some processors compute rows in pairs and round an odd last row differently. So the batch is padded to an even
        # number of rows.
        self._paired = paired
        self._padded_rows = rows + (rows % 2 if paired else 0)
        self._source_used = self._target_used = 0  # positions claimed
        self._lock = threading.Lock()
        causal = sizes.encoder == "causal"
        self.encoder = self._empty(sizes.encoder_layers if causal else 0, source_room)
        self.decoder = self._empty(sizes.decoder_layers, target_room)
        self.memory = self._empty(sizes.decoder_layers, source_room)
        self.memory[...] = 0  # masked values must be finite; in the other caches only filled positions are used
        # Small inputs are bound once and changed in place.
        self._read_last, self._read_total = np.zeros(self._padded_rows, dtype=np.int32), np.zeros((), dtype=np.int32)
        self._last, self._total = np.zeros(self._padded_rows, dtype=np.int32), np.zeros((), dtype=np.int32)
        self._piece = np.zeros((self._padded_rows, 1), dtype=np.int64)
        self._position = np.zeros((1, sizes.width), dtype=np.float32)
        self._mask = np.full((self._padded_rows, 1, 1, source_room), HIDDEN)
        self._sees_source = np.zeros((self._padded_rows, 1, 1), dtype=np.float32)
        self._shown: int | None = 0  # visible positions, if they are the same in all rows
        self._logits = np.empty((self._padded_rows, 1, sizes.pieces), dtype=np.float32)
        self._reading = self._bound_reading() if causal else None
        self._writing = self._bound_writing()

    def _empty(self, layers: int, room: int) -> np.ndarray:
        depth = self._sizes.width // self._sizes.heads
        caches = np.empty((2 * layers, self._padded_rows, self._sizes.heads, room, depth), dtype=np.float32)
        caches[:, self.rows :] = 0
        return caches

    def _bound_reading(self) -> Any:
        binding = self._read.io_binding()
        binding.bind_cpu_input("last", self._read_last)
        binding.bind_cpu_input("total", self._read_total)
        _bind(binding, "encoder", self.encoder, grows=True)
        self._new_pieces = np.zeros((self._padded_rows, 0), dtype=np.int64)  # bound when their number is known
        return binding

    def _bind_new(self, count: int) -> None:
        """Bind inputs for `count` new pieces. They stay bound while the number is the same."""
        self._new_pieces = np.zeros((self._padded_rows, count), dtype=np.int64)
        self._new_positions = np.zeros((count, self._sizes.width), dtype=np.float32)
        self._new_memory = self._empty(self._sizes.decoder_layers, count)
        assert self._reading is not None
        self._reading.bind_cpu_input("pieces", self._new_pieces)
        self._reading.bind_cpu_input("positions", self._new_positions)
        _bind_output(self._reading, "memory", self._new_memory)

    def _bound_writing(self) -> Any:
        binding = self._write.io_binding()
        small = {"pieces": self._piece, "positions": self._position, "last": self._last, "total": self._total}
        for name, array in (small | {"source_mask": self._mask, "hears": self._sees_source}).items():
            binding.bind_cpu_input(name, array)
        _bind(binding, "memory", self.memory, grows=False)
        _bind(binding, "decoder", self.decoder, grows=True)
        _bind_output(binding, "logits", self._logits)
        return binding

    def with_room(self, read: int, written: int, source: int = 0, target: int = 0) -> KvCache:
        """Reserve positions after those of a state, and return this cache, or a copy if they are taken."""
        ends = read + source, written + target
        with self._lock:
            fits = ends[0] <= self.source_room and ends[1] <= self.target_room
            if fits and (not source or self._source_used == read) and (not target or self._target_used == written):
                self._source_used, self._target_used = max(self._source_used, ends[0]), max(self._target_used, ends[1])
                return self
        copy = self.copied(read, written, source, target)
        copy._source_used, copy._target_used = ends
        return copy

    def copied(
        self, read: int, written: int, source: int = 0, target: int = 0, rows: np.ndarray | None = None
    ) -> KvCache:
        """Return a copy of the positions of a state, or of some of its rows, with spare room."""
        chosen = slice(self.rows) if rows is None else rows
        room = _enough(read + source), _enough(written + target)
        size = self.rows if rows is None else len(rows)
        copy = KvCache(self._sizes, self._read, self._write, size, *room, paired=self._paired)
        copy._source_used, copy._target_used = read, written
        for new, old, length in (
            (copy.encoder, self.encoder, read),
            (copy.memory, self.memory, read),
            (copy.decoder, self.decoder, written),
        ):
            new[:, :size, :, : min(length, old.shape[3])] = old[:, chosen, :, :length]
        return copy

    def encode(self, pieces: np.ndarray, positions: np.ndarray, before: int) -> None:
        """Add source pieces [B, n] after `before` others to the encoder cache and the memory."""
        count = pieces.shape[1]
        if self._new_pieces.shape[1] != count:
            self._bind_new(count)
        self._new_pieces[: self.rows] = pieces
        self._new_positions[...] = positions
        self._read_last[:] = before + count - 1
        self._read_total[...] = before + count
        self._read.run_with_iobinding(self._reading)
        self.memory[:, :, :, before : before + count] = self._new_memory

    def show(self, visible: int | np.ndarray) -> None:
        """Set how many positions of the memory the next step can see: one number, or one per row."""
        if not isinstance(visible, int):
            seen = np.arange(self.source_room) < visible[:, None]
            self._mask[: self.rows, 0, 0] = np.where(seen, np.float32(0), HIDDEN)
            self._sees_source[: self.rows, 0, 0] = visible > 0
            self._shown = None
        elif visible != self._shown:
            self._mask[..., :visible] = 0
            self._mask[..., visible:] = HIDDEN
            self._sees_source[...] = visible > 0
            self._shown = visible

    def decode(self, previous: np.ndarray, position: np.ndarray, before: int) -> np.ndarray:
        """Add one target piece per row after `before` others, and return the logits [B, V] of the next."""
        self._piece[: self.rows, 0] = previous
        self._position[...] = position
        self._last[:] = before
        self._total[...] = before + 1
        self._write.run_with_iobinding(self._writing)
        return self._logits[: self.rows, 0].copy()


def _enough(needed: int) -> int:
    """Return the room for `needed` positions. Unused positions slow down every step, so it is half as much again.

    It is always a multiple of 16. Processors round differently at other small sizes, and a live session would write
    other words than a batch.
    """
    wanted = max(1, needed + needed // 2)
    return _ROOM * -(-wanted // _ROOM)


def _bind(binding: Any, owner: str, caches: np.ndarray, grows: bool) -> None:
    import onnxruntime

    for name, array in zip(cache_names(owner, len(caches) // 2), caches, strict=True):
        if not grows:
            binding.bind_cpu_input(name, array)
            continue
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        binding.bind_ortvalue_input(name, value)
        binding.bind_ortvalue_output(grown_name(name), value)


def _bind_output(binding: Any, name: str, array: np.ndarray) -> None:
    binding.bind_output(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
