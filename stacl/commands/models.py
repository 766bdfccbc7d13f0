"""List the models that come with the package, or show the model card of one.

stacl models          language pair, size and domain of each model
stacl models de-en    the model card: data and licences, training, quality at every latency, known weaknesses
"""

from __future__ import annotations

import argparse

from stacl.runs import pretrained
from stacl.runs.folder import RunFolder
from stacl.text.languages import language


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="show the model card of this model")


def run(args: argparse.Namespace) -> int:
    if args.name:
        print(pretrained.card(args.name), end="")
        return 0
    width = max(map(len, pretrained.names()))
    for name in pretrained.names():
        folder = pretrained.folder(name)
        manifest = RunFolder(folder).manifest()
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        direction = f"{language(manifest.source).name} to {language(manifest.target).name}"
        print(f"{name:<{width}} {direction:<18} {size / 1e6:>4.1f} MB   {pretrained.summary(name)}")
    print("\nstacl translate NAME translates live; stacl models NAME shows the model card.")
    return 0
