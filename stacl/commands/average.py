"""Average the weights of runs that went on from one another: often better than the last of them.

  stacl average runs/second-de-en runs/third-de-en --out runs/mean-de-en
  stacl average runs/second-de-en runs/third-de-en runs/third-de-en --out runs/mean-de-en   # the third weighs twice

The loss of each run and of their mean, on the validation data of the last one, says whether it was worth it. Runs that
began apart have nothing in common, and their mean is worthless. A shipped or exported model may be one of them, but not
the last, whose data is needed; so may a smaller one that the last began with. OUT is a run folder to translate with,
evaluate, export, or go on from (`model.start`).
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stacl.runs import pretrained
from stacl.runs.folder import RunFolder
from stacl.support.errors import UserError
from stacl.support.files import write_atomically

if TYPE_CHECKING:
    from torch import Tensor

# Of two models that have a mean; a smaller one is made as deep, and as wide inside, as the last.
_MAY_DIFFER: dict[str, Any] = {
    "preset": "",
    "start": "",
    "dropout": 0.0,
    "inner": 1,
    "encoder_layers": 1,
    "decoder_layers": 1,
}


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="+", metavar="RUN", help="run folders or shipped models; one named twice weighs twice"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="OUT", help="folder to make")


def run(args: argparse.Namespace) -> int:
    if args.out.exists():
        raise UserError(f"{args.out} is there already; name a new folder")
    if len(args.runs) < 2:
        raise UserError("an average needs two runs or more")
    try:
        from stacl.policies.base import policy
        from stacl.runs import checkpoint
        from stacl.runs.folder import build_model
        from stacl.training.prepare import prepare
        from stacl.training.validate import Figures, validate
        from stacl.training.warm_start import warm_start
    except ImportError as error:
        raise UserError(f"{error.name} is not installed; install stacl[train]") from None
    runs = [pretrained.find(name) for name in args.runs]
    last = runs[-1]
    _check_alike(runs)
    facts = {"step": checkpoint.model_facts(RunFolder(last).weights)["step"], "averaged": len(runs)}
    settings = RunFolder(last).settings(["train.bleu_lines=0"])  # the loss alone says enough, and sooner
    chosen = policy(settings.policy)
    vocabularies = RunFolder(last).vocabularies()

    def taken(folder: Path) -> dict[str, Tensor]:
        """As large as the last: layers and units that a smaller one lacks add nothing."""
        model = build_model(settings.model, *vocabularies, settings.text.shared)
        warm_start(model, settings.model, folder, *vocabularies)
        return model.state_dict()

    weights = {folder: taken(folder) for folder in runs}
    mean = checkpoint.average(weights[folder] for folder in runs)
    with tempfile.TemporaryDirectory() as scratch:
        prepared = prepare(settings, RunFolder(_home(last, Path(scratch))), lambda text: print(text, file=sys.stderr))

        def figures(weights: dict[str, Tensor], name: Path) -> Figures:
            model = build_model(settings.model, prepared.source, prepared.target, settings.text.shared)
            checkpoint.load_weights(model, weights, str(name))
            found = validate(model.eval(), prepared, settings, chosen)
            print(f"{name}: validation loss {found.loss:.4f}", flush=True)
            return found

        for folder, tensors in weights.items():
            figures(tensors, folder)
        facts["valid"] = asdict(figures(mean, args.out))

    def write(folder: Path) -> None:
        folder.mkdir(parents=True)
        made = RunFolder(folder)
        shutil.copytree(RunFolder(last).vocabulary, made.vocabulary)
        made.save_settings(RunFolder(last).settings())
        checkpoint.save_model(made.weights, mean, facts)

    write_atomically(args.out, write)
    return 0


def _home(last: Path, scratch: Path) -> Path:
    """Where the data lies, or is made: never in a folder that is only to be read, for it would look like a run."""
    if (last / "data").exists():
        return last
    shutil.copytree(last / "vocabulary", scratch / "vocabulary")
    return scratch


def _check_alike(runs: list[Path]) -> None:
    """The same model over the same pieces, or the mean of two weights means nothing."""
    every = [RunFolder(folder).settings() for folder in runs]
    models = [(replace(one.model.resolved(), **_MAY_DIFFER), one.data.source, one.data.target) for one in every]
    for folder, model in zip(runs, models, strict=True):
        if model != models[-1] or _pieces(folder) != _pieces(runs[-1]):
            raise UserError(f"{folder} is another model than {runs[-1]}, or has another vocabulary: they have no mean")


def _pieces(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "vocabulary").glob("*.model"))}
