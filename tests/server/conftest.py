"""Servers for tests: real ones, on a free port, with small random models behind them."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from stacl.api import load
from stacl.engines.torch import TorchEngine
from stacl.export.onnx import export_model
from stacl.live.translator import Translator
from stacl.runs.folder import EXPORTED
from stacl.server.app import create_app
from stacl.server.hub import Hub
from stacl.server.limits import Limits
from stacl.server.run import Server, listen
from stacl.server.settings import Settings
from tests.browser import open_browser
from tests.helpers import random_translator


@dataclass
class Running:
    """A server that runs in a thread of this process."""

    port: int
    models: Mapping[str, Translator]
    hub: Hub
    server: Server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def live(self) -> str:
        return f"ws://127.0.0.1:{self.port}/live"


@contextlib.contextmanager
def serving(models: Mapping[str, Translator], settings: Settings | None = None, **limits: Any) -> Iterator[Running]:
    """A server with these limits, for as long as the block runs."""
    settings = settings or Settings(limits=Limits(**limits), workers=2)
    listener = listen("127.0.0.1", 0)
    app = create_app(models, settings)
    server = Server(app)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    try:
        yield Running(listener.getsockname()[1], models, app.state.hub, server)
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive(), "the server did not end"


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random model on the disk, as `stacl export` would write it."""
    folder, model = tmp_path_factory.mktemp("models") / "nonsense", random_translator()
    (folder / "vocabulary").mkdir(parents=True)
    model.source_pieces.save(folder / "vocabulary" / "source.model")
    model.manifest.save(folder / "manifest.json")
    assert isinstance(model.engine, TorchEngine)
    export_model(model.engine.model, folder / EXPORTED, "float32")
    return folder


@pytest.fixture(scope="session")
def models(model_folder: Path) -> dict[str, Translator]:
    """`de-en` says nonsense, but by all the rules; `zh-en` reads words without spaces."""
    return {"de-en": load(model_folder), "zh-en": random_translator("rnn", source="zh")}


@pytest.fixture(scope="session")
def server(models: dict[str, Translator]) -> Iterator[Running]:
    """One server for many tests: `server.url`, `server.live`, `server.models`."""
    with serving(models) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless browser for the tests of the page. While it is open, asyncio.run cannot be used."""
    with open_browser() as found:
        yield found
