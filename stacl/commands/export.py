"""Export a trained model for the fast engine: int8 weights, no torch needed to run it.

  stacl export runs/multi30k-de-en fast/de-en
  stacl translate fast/de-en --policy wait-k:3

The folder holds the vocabularies, two ONNX graphs and one file of weights, all with checksums. It is what to put behind
a server or into another program: several times faster than torch for a single listener.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from stacl.support.errors import UserError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder with a trained Transformer")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder to make")
    parser.add_argument(
        "--precision", choices=("int8", "float32"), default="int8", help="of the weights (default int8)"
    )


def run(args: argparse.Namespace) -> int:
    if args.out.exists():
        raise UserError(f"{args.out} is there already; name a new folder")
    try:
        from stacl.export.onnx import export
    except ImportError as error:
        raise UserError(f"{error.name} is not installed; install stacl[train,export]") from None
    export(args.run, args.out, args.precision)
    size = sum(path.stat().st_size for path in args.out.rglob("*") if path.is_file())
    print(f"{args.out}: {size / 1e6:.1f} MB")
    return 0
