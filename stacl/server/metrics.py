"""Figures about the server for Prometheus: counts, one histogram, and what is true right now. No user text."""

from __future__ import annotations

import bisect
import os
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

_COUNTERS = {
    "sessions_opened": "sessions begun",
    "sessions_resumed": "connections that went on with a session",
    "refused": "messages, requests and connections refused, by reason",
    "dropped": "connections cut off or lost, by reason",
    "words_in": "source words heard",
    "words_out": "target words said",
    "requests": "requests to /translate",
}
_GAUGES = {
    "sessions_open": "sessions right now, those waiting for their client counted",
    "connections_open": "websockets right now",
    "queue_length": "sessions waiting for their turn to be computed",
}
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counted in the event loop only."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter({(name, ""): 0 for name in ("sessions_opened", "requests")})
        self._delays = [0] * (len(_BUCKETS) + 1)
        self._delay_sum = 0.0

    def add(self, name: str, amount: int = 1, **labels: str) -> None:
        written = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())
        self._counts[name, f"{{{written}}}" if written else ""] += amount

    def delayed(self, seconds: float) -> None:
        """A word went out so long after the message that allowed it."""
        self._delays[bisect.bisect_left(_BUCKETS, seconds)] += 1
        self._delay_sum += seconds

    def text(self, **gauges: float) -> str:
        """Everything in Prometheus' format."""
        lines: list[str] = []
        for name, about in _COUNTERS.items():
            lines += _head(f"stacl_{name}_total", about, "counter")
            found = sorted(label for key, label in self._counts if key == name)
            lines += [f"stacl_{name}_total{label} {self._counts[name, label]}" for label in found]
        for name, about in _GAUGES.items():
            lines += [*_head(f"stacl_{name}", about, "gauge"), f"stacl_{name} {gauges[name]:g}"]
        lines += self._histogram("stacl_word_delay_seconds")
        lines += _head("process_resident_memory_bytes", "memory in use", "gauge")
        lines.append(f"process_resident_memory_bytes {resident_memory()}")
        return "\n".join(lines) + "\n"

    def _histogram(self, name: str) -> Iterable[str]:
        yield from _head(name, "seconds from the message that allowed a word until the word went out", "histogram")
        total = 0
        for bound, count in zip([*map(str, _BUCKETS), "+Inf"], self._delays, strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self._delay_sum:.6f}"
        yield f"{name}_count {total}"


def resident_memory() -> int:
    """Bytes; where the system does not tell, the most that it ever was, or 0."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return 0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _head(name: str, about: str, kind: str) -> list[str]:
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
