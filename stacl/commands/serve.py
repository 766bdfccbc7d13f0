"""Serve live translation: a web page for the browser, and an API over websocket and HTTP.

Open the printed address in a browser. Programs use the websocket /live and the HTTP endpoint /translate; see
docs/api.md. By default only this computer can connect. With another --host, clients need a token.

  stacl serve
  stacl serve runs/multi30k-de-en mine=runs/another --port 8080
  stacl serve de-en --host 0.0.0.0 --limit sessions=50
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import signal
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from stacl.server import limits
from stacl.support.errors import UserError

if TYPE_CHECKING:
    from stacl.live.translator import Translator
    from stacl.server.settings import Settings

_TOKEN = "STACL_TOKEN"
_TOKEN_CHARACTERS = re.compile(r"[!-~]*")  # allowed in an HTTP header
_OTHER_FILES = 100  # open files besides connections: models, libraries, the log
_ALL_ADDRESSES = ("0.0.0.0", "::", "")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        nargs="*",
        metavar="MODEL",
        help="a run folder, NAME=FOLDER, or a shipped model; the first is the default (default: all shipped models)",
    )
    parser.add_argument(
        "--policy",
        metavar="P",
        help="policy of clients that name none, except the page (default: the model's; k = 5 if it serves every k)",
    )
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8765, metavar="P", help="port; 0 for any free port (default 8765)")
    parser.add_argument(
        "--token",
        metavar="T",
        help=f"token of clients (default: ${_TOKEN}, or a random one if --host is not local)",
    )
    parser.add_argument("--no-token", action="store_true", help="accept all clients that can reach the address")
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="URL",
        help="origin of another web page that may connect, such as https://example.org; may be repeated",
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="number of computing threads (default: one per core, at most 4)"
    )
    parser.add_argument(
        "--limit", action="append", default=[], metavar="NAME=N", help="change a limit; may be repeated"
    )
    parser.epilog = f"limits and their defaults:\n{limits.describe()}"


def run(args: argparse.Namespace) -> int:
    settings = _settings(args)
    folders = _folders(args.model)
    # Before the libraries of the models are loaded: this server has its own computing threads.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        from stacl.server import journal
        from stacl.server.app import create_app
        from stacl.server.run import Server, allow_files, listen
    except ImportError as error:
        raise UserError(f"{error.name} is not installed; install stacl[serve]") from None
    with listen(args.host, args.port) as listener:  # before the models are loaded, which is slow
        app = create_app(_loaded(folders, args.policy), settings)
        allow_files(settings.limits.connections + _OTHER_FILES)
        journal.configure()
        print(_announcement(args.host, listener, settings, list(folders)), file=sys.stderr, flush=True)
        server = Server(app)
        server.run([listener])
    return 128 + signal.SIGINT if server.force_exit else 0


def _settings(args: argparse.Namespace) -> Settings:
    from stacl.server.settings import LOOPBACK, Settings, default_workers

    if not 0 <= args.port <= 65_535:
        raise UserError(f"--port must be from 0 to 65535, not {args.port}")
    if args.workers is not None and not 1 <= args.workers <= 64:
        raise UserError(f"--workers must be from 1 to 64, not {args.workers}")
    is_local = args.host in LOOPBACK or args.host.startswith("127.")
    token = _given_token(args)
    generated = secrets.token_urlsafe(16) if token is None and not is_local and not args.no_token else None
    return Settings(
        limits=limits.Limits.parse(args.limit),
        token=token or generated,
        token_is_secret=generated is None,
        origins=tuple(args.allow_origin),
        hosts=(*LOOPBACK, args.host) if is_local else None,
        workers=args.workers or default_workers(),
    )


def _given_token(args: argparse.Namespace) -> str | None:
    if args.token is not None and args.no_token:
        raise UserError("--token and --no-token cannot be combined; remove one")
    if args.token is not None and not args.token.strip():
        raise UserError("--token is empty; give a token, or accept all clients with --no-token")
    if args.no_token:
        return None
    # An empty variable counts as unset: an empty token would open the server to everybody.
    # Files with secrets often end with a line feed, which clients do not send.
    token = (args.token or os.environ.get(_TOKEN) or "").strip()
    if not _TOKEN_CHARACTERS.fullmatch(token):
        raise UserError(f"the token (--token or {_TOKEN}) must be printable ASCII characters without spaces")
    return token or None


def _folders(models: list[str]) -> dict[str, Path | str]:
    """Return the models to load, by the names that clients use."""
    from stacl.runs import pretrained

    shipped = pretrained.names()
    if not models and not shipped:
        raise UserError("this installation has no shipped model; name one: stacl serve runs/my-model")
    found: dict[str, Path | str] = {}
    for model in models or shipped:
        name, equals, folder = model.partition("=")
        if not equals:
            name, folder = (model, model) if model in shipped else (Path(model).resolve().name, model)
        if not name or not folder:
            raise UserError(f"a model must be a folder or NAME=FOLDER, not {model!r}")
        if name in found:
            raise UserError(f"two models are called {name!r}; rename one: NAME={folder}")
        found[name] = folder
    return found


def _loaded(folders: dict[str, Path | str], policy: str | None) -> dict[str, Translator]:
    from stacl import api

    found = {name: api.load(folder, policy=policy) for name, folder in folders.items()}
    for name, translator in found.items():
        try:
            _ = translator.policy  # fails if it is a Python file, which only the user may name
        except UserError as error:
            raise UserError(f"{name}: {error}") from None
    return found


def _announcement(host: str, listener: socket.socket, settings: Settings, names: list[str]) -> str:
    """Return one line with the address of the page and the models."""
    shown = socket.gethostname() if host in _ALL_ADDRESSES else host
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{listener.getsockname()[1]}/"
    if settings.token is not None:  # only a generated token is printed: any other is secret, and logs are kept
        address += f"?token={'TOKEN' if settings.token_is_secret else quote(settings.token, safe='')}"
    return f"stacl serve: open {address} (models: {', '.join(names)}; Ctrl-C ends)"
