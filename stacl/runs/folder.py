"""A run folder: the one place that knows which file of a run lies where, what has begun, and what may go on.

config.toml          the training config
manifest.json        what inference needs (runs/manifest.py)
vocabulary/          source.model, and target.model unless both languages share one
data/                the encoded corpus
checkpoints/         to resume from
snapshots/           weights of the last validations, to average
log.jsonl            one line per validation
schedule.json        the outline of the policy that the run began under
model.safetensors    the best weights
fast/                exported graphs and weights (runs/exported.py)
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stacl import config
from stacl.config import Config
from stacl.policies.base import Policy, policy
from stacl.runs.manifest import Manifest
from stacl.support import plugins
from stacl.support.errors import UserError, suggest
from stacl.support.files import remove, write_text_atomically

if TYPE_CHECKING:
    from stacl.config import ModelSettings
    from stacl.decoding.engine import Engine
    from stacl.models.base import Model
    from stacl.text.subwords import Subwords

EXPORTED = "fast"  # the folder of exported graphs and weights
_FIXED = ("seed", "optimizer")  # with another one, what was trained before is not a beginning of this run
_ENGINES = ("auto", *plugins.names("engines"))


class RunFolder:
    """The files below one folder. Making one touches no file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config, self.manifest_file = path / "config.toml", path / "manifest.json"
        self.vocabulary, self.data = path / "vocabulary", path / "data"
        self.weights, self.exported = path / "model.safetensors", path / EXPORTED
        self.checkpoints, self.snapshots = path / "checkpoints", path / "snapshots"
        self.log, self.schedule = path / "log.jsonl", path / "schedule.json"

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_model(self) -> bool:
        return self.manifest_file.exists() or self.config.exists()

    def settings(self, changes: Sequence[str] = ()) -> Config:
        """The training config."""
        return config.load(self.config, list(changes))

    def save_settings(self, settings: Config) -> None:
        """The training config, and the manifest that follows from it."""
        config.save(settings, self.config)
        Manifest.of(settings).save(self.manifest_file)

    def manifest(self) -> Manifest:
        """What inference needs. Runs of older versions have none: theirs follows from the config."""
        return Manifest.load(self.manifest_file) if self.manifest_file.exists() else Manifest.of(self.settings())

    def vocabularies(self, shared: bool | None = None) -> tuple[Subwords, Subwords]:
        """Source and target; `shared` says whether one serves both, if it is known."""
        from stacl.text.subwords import Subwords

        source, other = Subwords.load(self.vocabulary / "source.model"), self.vocabulary / "target.model"
        if other.exists():
            return source, Subwords.load(other)
        if shared is None:
            shared = not self.is_model or self.manifest().shared_vocabulary
        if not shared:
            raise UserError(f"no vocabulary {other}, though text.shared is false: the target has pieces of its own")
        return source, source

    def engine(self, name: str, manifest: Manifest, source: Subwords, target: Subwords) -> tuple[Engine[Any], str]:
        """What runs the model, and the checksum of its weights.

        `torch` takes the trained weights, `onnx` the exported ones, `auto` what the folder has, trained first.
        """
        name = {"fast": "onnx"}.get(name, name)  # its former name
        if name not in _ENGINES:
            raise UserError(f"no engine is called {name!r}{suggest(name, _ENGINES)}")
        if name == "onnx" or (name == "auto" and self.exported.is_dir() and not self.weights.exists()):
            from stacl.runs import exported

            return exported.load_engine(self.exported)

        from stacl.engines.torch import TorchEngine
        from stacl.runs import checkpoint

        model = build_model(manifest.architecture.settings(), source, target, manifest.shared_vocabulary)
        tensors, facts = checkpoint.load_model(self.weights)
        checkpoint.load_weights(model, tensors, str(self))
        return TorchEngine(model), str(facts["checksum"])

    def claim(self, settings: Config, resume: bool) -> None:
        """Make the folder that of a new run, or of one that goes on. A new run never overwrites an old one."""
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"{self} is a file, not a folder for a run; --out RUN names another")
        parts = {"data": self.data / "train", "checkpoints": self.checkpoints} | self._models
        begun = {name for name, part in parts.items() if part.exists()}
        if begun and not resume:
            raise UserError(f"{self} holds a run already; --resume goes on with it, --out RUN begins another")
        if begun and not begun & {"data", "checkpoints"}:
            raise UserError(
                f"{self} holds a model, but no training that could go on; --out RUN --set model.start={self} begins one"
            )
        if begun:
            return  # its vocabulary stays; data that was removed to save space is made again from the corpus
        if self.vocabulary.exists() and not self.config.exists():
            raise UserError(f"{self} has a vocabulary, but is not a run; --out RUN names another folder")
        remove(self.vocabulary)  # a failed beginning left it behind
        self.save_settings(settings)

    def changed_fields(self, wanted: Config) -> list[tuple[str, object, object]]:
        """The fields of `train` that change if it goes on with these settings: name, old value, new value."""
        return _changes(self.settings(), wanted, "train")

    def check_resumable(self, wanted: Config) -> None:
        """Refuse settings that would make it another run."""
        begun = self.settings()
        for section in ("data", "text", "model"):
            changed = [name for name, _, _ in _changes(begun, wanted, section)]
            if section == "data":  # the encoded corpus lies in the run folder
                changed = [name for name in changed if name != "root"]
            if section == "model" and not self._is_trained:  # it failed at its start, and may begin otherwise
                changed = [name for name in changed if name == "start"]  # which the vocabulary may come from
            if changed:
                raise UserError(f"{self} was begun with another {section}.{changed[0]}; --out RUN begins a new run")
        if begun.policy != wanted.policy:
            raise UserError(f"{self} was begun under {begun.policy}, not {wanted.policy}; --out RUN begins a new run")
        self._check_schedule(policy(wanted.policy))
        for name, _, _ in _changes(begun, wanted, "train"):
            if name in _FIXED:
                raise UserError(f"{self} was begun with another train.{name}; --out RUN begins a new run")

    def save_schedule(self, chosen: Policy) -> None:
        """The outline of the policy: its file may be edited, and the run then must not go on."""
        write_text_atomically(self.schedule, json.dumps(chosen.fingerprint()) + "\n")

    def _check_schedule(self, now: Policy) -> None:
        before = None
        with contextlib.suppress(OSError, ValueError):  # an old run has none, and a damaged one says nothing
            before = json.loads(self.schedule.read_text(encoding="utf-8"))
        if before not in (None, now.fingerprint(), now.schedule(100, 100)):  # which is all that older runs have kept
            raise UserError(
                f"{now} is not what it was when {self} was begun: its file was edited, or is another;"
                " restore it, or --out RUN begins a new run"
            )

    @property
    def _models(self) -> dict[str, Path]:
        return {"weights": self.weights, "exported": self.exported}

    @property
    def _is_trained(self) -> bool:
        return any(part.exists() for part in (self.checkpoints, *self._models.values()))


def _changes(begun: Config, wanted: Config, section: str) -> list[tuple[str, object, object]]:
    """The fields of a section that differ: name, old value, new value."""
    old, new = getattr(begun, section), getattr(wanted, section)
    values = (
        (name, getattr(old, name), getattr(new, name)) for name in (field.name for field in dataclasses.fields(old))
    )
    return [(name, before, after) for name, before, after in values if before != after]


def build_model(settings: ModelSettings, source: Subwords, target: Subwords, shared: bool) -> Model:
    """A model of these settings, with random weights."""
    from stacl.models.base import Model

    kind = plugins.find("models", settings.kind, Model)  # type: ignore[type-abstract]
    return kind.build(settings.resolved(), len(source), len(target), shared)
