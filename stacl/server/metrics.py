"""Server metrics for Prometheus: counters, one histogram and gauges. They never contain user text."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, generate_latest
from prometheus_client.registry import Collector

_COUNTERS = {
    "sessions_opened": ("sessions started", ()),
    "sessions_resumed": ("connections that resumed a session", ()),
    "refused": ("messages, requests and connections refused, by reason", ("reason",)),
    "dropped": ("connections closed by the server or lost, by reason", ("reason",)),
    "words_in": ("source words read", ("model",)),
    "words_out": ("target words written", ("model",)),
    "requests": ("requests to /translate", ()),
}
_GAUGES = {
    "sessions_open": "sessions, including disconnected ones that can be resumed",
    "connections_open": "open websockets",
    "queue_length": "sessions waiting for a worker thread",
}
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The metrics of one application, in a registry of its own. `gauges` are read on every scrape."""

    def __init__(self, gauges: Mapping[str, Callable[[], float]]) -> None:
        self._registry = CollectorRegistry()
        self._counters = {
            name: Counter(f"stacl_{name}", about, labels, registry=self._registry)
            for name, (about, labels) in _COUNTERS.items()
        }
        for name, about in _GAUGES.items():
            Gauge(f"stacl_{name}", about, registry=self._registry).set_function(gauges[name])
        self._delays = Histogram(
            "stacl_word_delay_seconds",
            "seconds from the arrival of the message that allowed a word until the word was sent",
            buckets=_BUCKETS,
            registry=self._registry,
        )
        Gauge("process_resident_memory_bytes", "resident memory", registry=self._registry).set_function(resident_memory)

    def add(self, name: str, amount: int = 1, **labels: str) -> None:
        counter = self._counters[name]
        (counter.labels(**labels) if labels else counter).inc(amount)

    def word_sent(self, delay: float) -> None:
        """Record the seconds from the arrival of the message that allowed a word until the word was sent."""
        self._delays.observe(delay)

    def text(self) -> str:
        """All metrics in the Prometheus text format."""
        return generate_latest(_WithoutCreated(self._registry)).decode()


class _WithoutCreated(Collector):
    """Omits the `_created` series. The library can only disable them for the whole process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


def resident_memory() -> int:
    """Resident memory in bytes. Without /proc: the maximum so far, or 0 where that is unknown too."""
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
