"""Serve the page and the interface for programs: live translation in the browser, over a websocket, over HTTP.

Open the address that is printed. Programs use /live, a websocket, and /translate; docs/api.md describes both. Only this
machine can connect, unless --host says otherwise; then clients must know a token.

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
_TOKEN_SIGNS = re.compile(r"[!-~]*")  # what a header can hold
_OTHER_FILES = 100  # models, libraries, the log
_EVERYWHERE = ("0.0.0.0", "::", "")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        nargs="*",
        metavar="MODEL",
        help="a run folder, NAME=FOLDER, or a shipped model; the first is the default one (default: all shipped ones)",
    )
    parser.add_argument(
        "--policy",
        metavar="P",
        help="for clients that name none; the page names its own (default: each model's; k = 5 of one for every k)",
    )
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8765, metavar="P", help="port, 0 for any free one (default 8765)")
    parser.add_argument(
        "--token", metavar="T", help=f"what clients must know (default: {_TOKEN}, or made up where one is needed)"
    )
    parser.add_argument("--no-token", action="store_true", help="let everybody in who can reach the address")
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="URL",
        help="a web page elsewhere that may connect, such as https://example.org; may be repeated",
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="threads that compute (default: one a core, 4 at most)"
    )
    parser.add_argument(
        "--limit", action="append", default=[], metavar="NAME=N", help="change a limit; may be repeated"
    )
    parser.epilog = f"limits and their defaults:\n{limits.describe()}"


def run(args: argparse.Namespace) -> int:
    settings = _settings(args)
    folders = _folders(args.model)
    # Before the models' libraries are loaded: the threads that compute are ours.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    try:
        from stacl.server import journal
        from stacl.server.app import create_app
        from stacl.server.run import Server, allow_files, listen
    except ImportError as error:
        raise UserError(f"{error.name} is not installed; install stacl[serve]") from None
    with listen(args.host, args.port) as listener:  # before the models are loaded, which takes a while
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
        raise UserError(f"--port goes from 0 to 65535, not {args.port}")
    if args.workers is not None and not 1 <= args.workers <= 64:
        raise UserError(f"--workers goes from 1 to 64, not {args.workers}")
    at_home = args.host in LOOPBACK or args.host.startswith("127.")
    token = _given_token(args)
    made_up = secrets.token_urlsafe(16) if token is None and not at_home and not args.no_token else None
    return Settings(
        limits=limits.Limits.parse(args.limit),
        token=token or made_up,
        token_is_secret=made_up is None,
        origins=tuple(args.allow_origin),
        hosts=(*LOOPBACK, args.host) if at_home else None,
        workers=args.workers or default_workers(),
    )


def _given_token(args: argparse.Namespace) -> str | None:
    if args.token is not None and args.no_token:
        raise UserError("--token and --no-token exclude each other")
    if args.token is not None and not args.token.strip():
        raise UserError("--token is empty, and would let everybody in; name one, or say so with --no-token")
    if args.no_token:
        return None
    # A variable that is set but empty was left out, not chosen: an empty token would open the server to everybody.
    # And a file that holds a secret often ends in a line feed, which no client sends.
    token = (args.token or os.environ.get(_TOKEN) or "").strip()
    if not _TOKEN_SIGNS.fullmatch(token):
        raise UserError(f"the token (--token, or {_TOKEN}) must be letters, digits and signs of ASCII without spaces")
    return token or None


def _folders(models: list[str]) -> dict[str, Path | str]:
    """What to load, by the name that clients use."""
    from stacl.runs import pretrained

    shipped = pretrained.names()
    if not models and not shipped:
        raise UserError("no model is shipped with this installation; name one: stacl serve runs/my-model")
    found: dict[str, Path | str] = {}
    for model in models or shipped:
        name, equals, folder = model.partition("=")
        if not equals:
            name, folder = (model, model) if model in shipped else (Path(model).resolve().name, model)
        if not name or not folder:
            raise UserError(f"a model is a folder or NAME=FOLDER, not {model!r}")
        if name in found:
            raise UserError(f"two models are called {name!r}; give one another name: NAME={folder}")
        found[name] = folder
    return found


def _loaded(folders: dict[str, Path | str], reading: str | None) -> dict[str, Translator]:
    from stacl import api

    found = {name: api.load(folder, policy=reading) for name, folder in folders.items()}
    for name, translator in found.items():
        try:
            _ = translator.policy  # a model may need a file of its maker's, which is not run unasked
        except UserError as error:
            raise UserError(f"{name}: {error}") from None
    return found


def _announcement(host: str, listener: socket.socket, settings: Settings, names: list[str]) -> str:
    """One line: where to open the page, and what is served."""
    shown = socket.gethostname() if host in _EVERYWHERE else host
    address = f"http://{f'[{shown}]' if ':' in shown else shown}:{listener.getsockname()[1]}/"
    if settings.token is not None:  # one that was made up must be said; another is a secret, and logs are kept
        address += f"?token={'TOKEN' if settings.token_is_secret else quote(settings.token, safe='')}"
    return f"stacl serve: open {address} (models: {', '.join(names)}; Ctrl-C ends)"
