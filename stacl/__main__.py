"""The command line: `stacl VERB ...`. Diagnostics go to stderr. The exit code of a user's mistake is 2."""

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
from stacl.commands._subcommands import add_subcommands
from stacl.support import plugins
from stacl.support.errors import UserError, suggest

DESCRIPTION = "Simultaneous translation: translate while the sentence is still being spoken."
# Modules that only training and run folders need. They are not installed by default.
TRAINING = ("torch", "safetensors", "tomli_w")


class _Parser(argparse.ArgumentParser):
    """An ArgumentParser with one-line errors that suggest the closest known name."""

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
        # The parser of the verb reports unknown options. argparse would leave that to the outermost parser.
        found, rest = super().parse_known_args(args, namespace)
        if self.prog == "stacl" or self._intermixed:
            return found, rest
        if rest and not any(word.startswith("-") for word in rest):
            # argparse ends a list of names at the first option, but a file name may also follow an option.
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
    list(add_subcommands(verbs, "commands"))
    return parser


def main(argv: list[str] | None = None) -> int:
    try:
        return _main(argv)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _main(argv: list[str] | None) -> int:
    if sys.stdout is None:  # the caller closed it: discard the output
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # UTF-8 like the input, whatever the locale. File names in messages may have any encoding.
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    program = "stacl"
    try:
        args = _arguments(argv)
        program = f"stacl {args.verb}"
        code = plugins.module("commands", args.verb).run(args) or 0
        sys.stdout.flush()  # now, while a full disk can still be reported
        return code
    except UserError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 2
    except ModuleNotFoundError as error:
        if error.name not in TRAINING:
            raise
        print(f"{program}: {error.name} is not installed: pip install 'stacl[train]'", file=sys.stderr)
        return 2
    except BrokenPipeError:
        _discard_output()  # the reader of the output has ended (`| head`): exit without a message
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _discard_output()
        print(f"{program}: the disk is full", file=sys.stderr)
        return 2


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    try:
        return build_parser().parse_args(argv)
    except SystemExit:  # after --help or --version
        sys.stdout.flush()
        raise


def _discard_output() -> None:
    """Redirect standard output to the null device. Otherwise Python writes the rest at exit, and fails again."""
    with contextlib.suppress(OSError, ValueError):  # standard output may be an object without a file descriptor
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
