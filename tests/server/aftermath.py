"""What must be true after any mischief: others are served, and nothing is kept."""

from __future__ import annotations

import gc
import time
from typing import Any

from stacl.server.live import Connection
from stacl.server.metrics import Metrics
from stacl.server.session import LiveSession
from tests.helpers import GERMAN
from tests.server.client import Client, alone
from tests.server.conftest import Running

UNLIMITED: dict[str, Any] = {"messages_per_second": 1e9, "message_burst": 10**9}


def still_serves(running: Running) -> None:
    """Somebody else is translated for as if nothing had happened."""
    with Client(running.live, policies=["wait-k:1"]) as client:
        client.text(GERMAN[0])
        client.finish()
    assert client.words() == alone(running.models["de-en"], "wait-k:1", GERMAN[0])[0]


def settled(running: Running) -> None:
    """Wait until nobody is connected and nothing is kept."""
    deadline = time.monotonic() + 20
    while running.hub.connections or running.hub.sessions:
        assert time.monotonic() < deadline, (len(running.hub.connections), len(running.hub.sessions))
        time.sleep(0.05)
    # A thread or a task that is just ending may hold one for a moment longer.
    while running.hub.metrics in _owners():
        assert time.monotonic() < deadline, "connections or sessions are kept by somebody"
        time.sleep(0.05)


def _owners() -> list[Metrics]:
    """Whose connections and sessions are still in memory: the metrics of their server."""
    gc.collect()
    kept = [thing for thing in gc.get_objects() if type(thing) in (Connection, LiveSession)]
    return [thing._hub.metrics if type(thing) is Connection else thing._metrics for thing in kept]
