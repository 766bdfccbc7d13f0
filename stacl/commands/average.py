"""Average the weights of runs that were trained from one another; the mean is often better than the last run.

  stacl average runs/second-de-en runs/third-de-en --out runs/mean-de-en
  stacl average runs/second-de-en runs/third-de-en runs/third-de-en --out runs/mean-de-en   # the third counts twice

Prints the validation loss of each run and of the mean, on the data of the last run. Runs that were initialised
separately cannot be averaged usefully. A shipped or exported model may be listed, but not last: the last run provides
the validation data. A smaller model that the last run was warm-started from may be listed too. OUT is a run folder for
`translate`, `evaluate`, `export`, or a warm start (`model.start`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stacl.support.errors import UserError

if TYPE_CHECKING:
    from stacl.training.validate import Figures


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="run folders or shipped models; one that is listed twice counts twice"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="OUT", help="folder to create")


def run(args: argparse.Namespace) -> int:
    if args.out.exists():
        raise UserError(f"{args.out} already exists; name a new folder")
    if len(args.runs) < 2:
        raise UserError("an average needs at least two runs")
    from stacl.runs import pretrained

    try:
        from stacl.training.average import Average
    except ImportError as error:
        raise UserError(f"{error.name} is not installed; install stacl[train]") from None

    def report(folder: Path, figures: Figures) -> None:
        print(f"{folder}: validation loss {figures.loss:.4f}", flush=True)

    average = Average([pretrained.find(name) for name in args.runs])
    figures = average.validate(args.out, report, lambda text: print(text, file=sys.stderr))
    average.save(args.out, figures)
    return 0
