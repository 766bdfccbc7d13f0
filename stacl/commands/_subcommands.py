"""Subcommands from the modules of a package: the file name is the name, the docstring is the help."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from stacl.support import plugins


def add_subcommands(parsers: Any, package: str) -> Iterator[argparse.ArgumentParser]:
    """Add a subcommand for each module of `package`, with its options, to the result of `add_subparsers`."""
    for name in plugins.names(package):
        module = plugins.module(package, name)
        doc = (module.__doc__ or "").strip()
        parser = parsers.add_parser(
            name,
            help=doc.splitlines()[0].rstrip("."),
            description=doc,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.configure(parser)
        yield parser
