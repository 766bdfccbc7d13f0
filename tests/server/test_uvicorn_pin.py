"""uvicorn is pinned to one version: server/run.py overrides methods that are not its public interface.

To upgrade: change the pin in pyproject.toml, run all tests of tests/server, and update VERSION here.
"""

from __future__ import annotations

import inspect
import tomllib

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from stacl.server.run import HttpProtocol, WebsocketProtocol
from tests.conftest import ROOT

VERSION = "0.54.0"


def test_the_pin_is_exact() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [name for group in project["optional-dependencies"].values() for name in group]
    wanted = [name for name in [*project["dependencies"], *extras] if name.startswith("uvicorn")]
    assert set(wanted) == {f"uvicorn=={VERSION}"}
    assert uvicorn.__version__ == VERSION


@pytest.mark.parametrize(
    ("base", "ours", "name", "parameters"),
    [
        (H11Protocol, HttpProtocol, "connection_made", ["self", "transport"]),
        (H11Protocol, HttpProtocol, "data_received", ["self", "data"]),
        (H11Protocol, HttpProtocol, "on_response_complete", ["self"]),
        (H11Protocol, HttpProtocol, "handle_websocket_upgrade", ["self", "event"]),
        (H11Protocol, HttpProtocol, "connection_lost", ["self", "exc"]),
        (WebSocketsSansIOProtocol, WebsocketProtocol, "connection_made", ["self", "transport"]),
        (WebSocketsSansIOProtocol, WebsocketProtocol, "run_asgi", ["self"]),
        (WebSocketsSansIOProtocol, WebsocketProtocol, "handle_ping", ["self"]),
    ],
)
def test_overridden_methods_exist(base: type, ours: type, name: str, parameters: list[str]) -> None:
    assert list(inspect.signature(getattr(base, name)).parameters) == parameters
    assert list(inspect.signature(getattr(ours, name)).parameters) == parameters
