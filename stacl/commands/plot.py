"""Plot the read/write path of a sentence, quality against latency, or an example sentence.

stacl plot path traces.jsonl --sentence 3 --out path.svg
stacl plot tradeoff ours=ours.json theirs=theirs.json --x AL CW --out curve.png
stacl plot example wait3.jsonl wait5.jsonl --sentence 7 --out example.svg
"""

from __future__ import annotations

import argparse
import sys

from stacl.commands._subcommands import add_subcommands
from stacl.plots import base
from stacl.support import plugins


def configure(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for kind in add_subcommands(kinds, "plots"):
        base.add_common_options(kind)


def run(args: argparse.Namespace) -> int:
    base.check_ending(args.out)
    base.save(plugins.module("plots", args.kind).picture(args), args.out)
    print(f"wrote {args.out}", file=sys.stderr)
    return 0
