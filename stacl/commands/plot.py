"""Plot the read/write path of a sentence, quality against latency, or an example sentence.

stacl plot path traces.jsonl --sentence 3 --out path.svg
stacl plot tradeoff ours=ours.json theirs=theirs.json --x AL CW --out curve.png
stacl plot example wait3.jsonl wait5.jsonl --sentence 7 --out example.svg
"""

from __future__ import annotations

import argparse
import sys

from stacl.plots import base
from stacl.support import plugins


def configure(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    for name in plugins.names("plots"):
        module = plugins.module("plots", name)
        doc = (module.__doc__ or "").strip()
        kind = kinds.add_parser(
            name,
            help=doc.splitlines()[0].rstrip("."),
            description=doc,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        module.configure(kind)
        base.add_common_options(kind)


def run(args: argparse.Namespace) -> int:
    base.check_ending(args.out)
    base.save(plugins.module("plots", args.kind).picture(args), args.out)
    print(f"wrote {args.out}", file=sys.stderr)
    return 0
