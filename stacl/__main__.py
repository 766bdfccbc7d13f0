"""The command line: `stacl VERB ...`. Text in, text out; diagnostics on stderr; exit 2 for a user's mistake."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import re
import signal
import sys
from pathlib import Path
from typing import NoReturn

import stacl
from stacl.support import plugins
from stacl.support.errors import UserError, suggest

DESCRIPTION = "Simultaneous translation: translate while the sentence is still being spoken."
# Modules that only a training or a run folder needs, and that the light install leaves out.
TRAINING = ("torch", "safetensors", "tomli_w")


class _Parser(argparse.ArgumentParser):
    """argparse, with one-line errors that suggest what was meant."""

    _intermixed = False

    def error(self, message: str) -> NoReturn:
        unknown = re.match(r"unrecognized arguments: (-\S+)", message)
        if unknown:
            options = [option for action in self._actions for option in action.option_strings]
            message = f"unknown option {unknown[1]}{suggest(unknown[1].split('=')[0], options)}"
        choice = re.match(r"argument VERB: invalid choice: '([^']*)'", message)
        if choice:
            message = f"unknown verb {choice[1]!r}{suggest(choice[1], plugins.names('commands'))}"
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def]
        # A verb's own parser answers for its unknown options; argparse would leave that to the outermost one.
        found, rest = super().parse_known_args(args, namespace)
        if self.prog == "stacl" or self._intermixed:
            return found, rest
        if rest and not any(word.startswith("-") for word in rest):
            # argparse ends a list of names at the first option: a file may also come behind it.
            self._intermixed = True
            found, rest = self.parse_known_intermixed_args(args, namespace)
            self._intermixed = False
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="stacl", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"stacl {stacl.__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    for name in plugins.names("commands"):
        command = plugins.module("commands", name)
        doc = (command.__doc__ or "").strip()
        verb = verbs.add_parser(
            name,
            help=doc.splitlines()[0].rstrip("."),
            description=doc,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.configure(verb)
    return parser


def main(argv: list[str] | None = None) -> int:
    try:
        return _main(argv)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _main(argv: list[str] | None) -> int:
    if sys.stdout is None:  # closed by who called us: what is said goes nowhere
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # As the input, whatever the locale is; the name of a file may be in anything.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    program = "stacl"
    try:
        args = _arguments(argv)
        program = f"stacl {args.verb}"
        code = plugins.module("commands", args.verb).run(args) or 0
        sys.stdout.flush()  # now, while it can be said that the disk is full
        return code
    except UserError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if error.name not in TRAINING:
            raise
        print(f"{program}: needs {error.name}: pip install 'stacl[train]'", file=sys.stderr)
        return 2
    except BrokenPipeError:
        _flush_into_nothing()  # the reader of our output has gone (`| head`): leave quietly
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _flush_into_nothing()
        print(f"{program}: the disk is full", file=sys.stderr)
        return 2


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    try:
        return build_parser().parse_args(argv)
    except SystemExit:  # the help was asked for, and is written
        sys.stdout.flush()
        raise


def _flush_into_nothing() -> None:
    """What could not be written would be tried again when Python ends, and complained of."""
    with contextlib.suppress(OSError, ValueError):  # of a caller's own, which is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
