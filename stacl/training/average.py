"""Average the weights of related runs, and compare the validation loss of each run with that of the mean."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from stacl.policies.base import policy
from stacl.runs import checkpoint
from stacl.runs.folder import RunFolder, build_model
from stacl.support.errors import UserError
from stacl.support.files import write_atomically
from stacl.training.prepare import prepare
from stacl.training.validate import Figures, validate
from stacl.training.warm_start import warm_start

# Model settings in which averaged runs may differ: a smaller model is first grown to the size of the last one.
_MAY_DIFFER: dict[str, Any] = {
    "preset": "",
    "start": "",
    "dropout": 0.0,
    "inner": 1,
    "encoder_layers": 1,
    "decoder_layers": 1,
}


class Average:
    """The mean of several runs; a run that is listed twice has twice the weight. The last run defines size and data."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders, self.last = folders, RunFolder(folders[-1])
        _check_alike(folders)
        self.settings = self.last.settings(["train.bleu_lines=0"])  # the loss is enough to compare, and faster
        self.weights = {folder: self._load(folder) for folder in folders}
        self.mean = checkpoint.average(self.weights[folder] for folder in folders)

    def _load(self, folder: Path) -> dict[str, Tensor]:
        """Weights at the size of the last run; layers and units that a smaller model lacks contribute nothing."""
        vocabularies = self.last.vocabularies()
        model = build_model(self.settings.model, *vocabularies, self.settings.text.shared)
        warm_start(model, self.settings.model, folder, *vocabularies)
        return model.state_dict()

    def validate(self, out: Path, report: Callable[[Path, Figures], None], say: Callable[[str], None]) -> Figures:
        """Report the figures of each run, then return those of the mean, which is named `out`."""
        chosen = policy(self.settings.policy)
        with tempfile.TemporaryDirectory() as scratch:
            prepared = prepare(self.settings, RunFolder(self._data_folder(Path(scratch))), say)
            for folder, weights in (self.weights | {out: self.mean}).items():
                model = build_model(self.settings.model, prepared.source, prepared.target, self.settings.text.shared)
                checkpoint.load_weights(model, weights, str(folder))
                figures = validate(model.eval(), prepared, self.settings, chosen)
                report(folder, figures)
        return figures

    def _data_folder(self, scratch: Path) -> Path:
        """The folder with prepared data; a scratch folder if the last run has none, so that it is left unchanged."""
        if self.last.data.exists():
            return self.last.path
        shutil.copytree(self.last.vocabulary, scratch / self.last.vocabulary.name)
        return scratch

    def save(self, out: Path, figures: Figures) -> None:
        """Write the mean as a run folder."""
        step = checkpoint.model_facts(self.last.weights)["step"]
        facts = {"step": step, "averaged": len(self.folders), "valid": asdict(figures)}

        def write(folder: Path) -> None:
            folder.mkdir(parents=True)
            made = RunFolder(folder)
            shutil.copytree(self.last.vocabulary, made.vocabulary)
            made.save_settings(self.last.settings())
            checkpoint.save_model(made.weights, self.mean, facts)

        write_atomically(out, write)


def _check_alike(folders: list[Path]) -> None:
    """All runs must have the same architecture, languages and vocabulary."""
    every = [RunFolder(folder).settings() for folder in folders]
    models = [(replace(one.model.resolved(), **_MAY_DIFFER), one.data.source, one.data.target) for one in every]
    for folder, model in zip(folders, models, strict=True):
        if model != models[-1] or _pieces(folder) != _pieces(folders[-1]):
            raise UserError(
                f"{folder} and {folders[-1]} have different models or vocabularies; they cannot be averaged"
            )


def _pieces(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(RunFolder(folder).vocabulary.glob("*.model"))}
