"""Export a trained model to ONNX with int8 weights, so that it runs without torch.

  stacl export runs/multi30k-de-en fast/de-en
  stacl translate fast/de-en --policy wait-k:3

The folder holds the vocabularies, two ONNX graphs and one file of weights, all with checksums. Use it for a server or
inside another program: for a single stream it is several times faster than torch.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from stacl.support.errors import UserError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="a run folder with a trained Transformer")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder to create; it must not exist")
    parser.add_argument(
        "--precision", choices=("int8", "float32"), default="int8", help="precision of the weights (default int8)"
    )


def run(args: argparse.Namespace) -> int:
    if args.out.exists():
        raise UserError(f"{args.out} already exists; name a new folder")
    try:
        from stacl.export.onnx import export
    except ImportError as error:
        raise UserError(f"{error.name} is not installed: pip install 'stacl[train,export]'") from None
    export(args.run, args.out, args.precision)
    size = sum(path.stat().st_size for path in args.out.rglob("*") if path.is_file())
    print(f"{args.out}: {size / 1e6:.1f} MB")
    return 0
