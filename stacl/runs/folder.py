"""A run folder: the paths of its files, and the checks before a run starts or resumes.

config.toml          the training config
manifest.json        what inference needs (runs/manifest.py)
vocabulary/          source.model, and target.model unless both languages share one
data/                the encoded corpus
checkpoints/         to resume training
snapshots/           weights of the last validations, to average
log.jsonl            one line per validation
schedule.json        the fingerprint of the policy that the run started with
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
_FIXED = ("seed", "optimizer")  # fields that cannot change when a run is resumed
_ENGINES = ("auto", *plugins.names("engines"))


class RunFolder:
    """The files of one run. The constructor does not touch any file."""

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
        """Load the training config."""
        return config.load(self.config, list(changes))

    def save_settings(self, settings: Config) -> None:
        """Save the training config and the manifest that follows from it."""
        config.save(settings, self.config)
        Manifest.of(settings).save(self.manifest_file)

    def manifest(self) -> Manifest:
        """Load the inference manifest. Runs of older versions have none, so it is derived from the config."""
        return Manifest.load(self.manifest_file) if self.manifest_file.exists() else Manifest.of(self.settings())

    def vocabularies(self, shared: bool | None = None) -> tuple[Subwords, Subwords]:
        """Load the source and target vocabularies. `shared` says whether both are the same, if known."""
        from stacl.text.subwords import Subwords

        source, other = Subwords.load(self.vocabulary / "source.model"), self.vocabulary / "target.model"
        if other.exists():
            return source, Subwords.load(other)
        if shared is None:
            shared = not self.is_model or self.manifest().shared_vocabulary
        if not shared:
            raise UserError(f"the vocabulary {other} does not exist, but text.shared is false")
        return source, source

    def engine(self, name: str, manifest: Manifest, source: Subwords, target: Subwords) -> tuple[Engine[Any], str]:
        """Return the engine that runs the model, and the checksum of its weights.

        `torch` uses the trained weights, `onnx` the exported ones, `auto` trained weights if there are any.
        """
        name = {"fast": "onnx"}.get(name, name)  # the old name
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
        """Prepare the folder for a new run, or check that it can resume. A new run never overwrites an old one."""
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"{self} is a file, not a run folder; name another with --out RUN")
        parts = {"data": self.data / "train", "checkpoints": self.checkpoints} | self._models
        begun = {name for name, part in parts.items() if part.exists()}
        if begun and not resume:
            raise UserError(f"{self} already holds a run; continue it with --resume, or start another with --out RUN")
        if begun and not begun & {"data", "checkpoints"}:
            raise UserError(
                f"{self} has a model but no checkpoint; to fine-tune it use --out RUN --set model.start={self}"
            )
        if begun:
            return  # the vocabulary stays; data that was removed is encoded again from the corpus
        if self.vocabulary.exists() and not self.config.exists():
            raise UserError(f"{self} has a vocabulary but is not a run; name another folder with --out RUN")
        remove(self.vocabulary)  # left over from a failed start
        self.save_settings(settings)

    def changed_fields(self, wanted: Config) -> list[tuple[str, object, object]]:
        """Return the fields of `train` that differ from the run's config: name, old value, new value."""
        return _changes(self.settings(), wanted, "train")

    def check_resumable(self, wanted: Config) -> None:
        """Raise a UserError if the run cannot be resumed with these settings."""
        begun = self.settings()
        for section in ("data", "text", "model"):
            changed = [name for name, _, _ in _changes(begun, wanted, section)]
            if section == "data":  # the encoded corpus is in the run folder
                changed = [name for name in changed if name != "root"]
            if section == "model" and not self._is_trained:  # nothing was trained yet, so the model may change
                changed = [name for name in changed if name == "start"]  # the vocabulary may come from there
            if changed:
                raise UserError(
                    f"{self} was started with a different {section}.{changed[0]}; use --out RUN for a new run"
                )
        if begun.policy != wanted.policy:
            raise UserError(f"{self} was started with {begun.policy}, not {wanted.policy}; use --out RUN for a new run")
        self._check_schedule(policy(wanted.policy))
        for name, _, _ in _changes(begun, wanted, "train"):
            if name in _FIXED:
                raise UserError(f"{self} was started with a different train.{name}; use --out RUN for a new run")

    def save_schedule(self, chosen: Policy) -> None:
        """Save the fingerprint of the policy. If the file of the policy is edited, the run cannot be resumed."""
        write_text_atomically(self.schedule, json.dumps(chosen.fingerprint()) + "\n")

    def _check_schedule(self, now: Policy) -> None:
        before = None
        with contextlib.suppress(OSError, ValueError):  # old runs have no such file, and a damaged one is ignored
            before = json.loads(self.schedule.read_text(encoding="utf-8"))
        if before not in (None, now.fingerprint(), now.schedule(100, 100)):  # the last is the format of older runs
            raise UserError(
                f"{now} has changed since {self} was started: its file was edited or replaced;"
                " restore it, or use --out RUN for a new run"
            )

    @property
    def _models(self) -> dict[str, Path]:
        return {"weights": self.weights, "exported": self.exported}

    @property
    def _is_trained(self) -> bool:
        return any(part.exists() for part in (self.checkpoints, *self._models.values()))


def _changes(begun: Config, wanted: Config, section: str) -> list[tuple[str, object, object]]:
    """Return the fields of a section that differ: name, old value, new value."""
    old, new = getattr(begun, section), getattr(wanted, section)
    values = (
        (name, getattr(old, name), getattr(new, name)) for name in (field.name for field in dataclasses.fields(old))
    )
    return [(name, before, after) for name, before, after in values if before != after]


def build_model(settings: ModelSettings, source: Subwords, target: Subwords, shared: bool) -> Model:
    """Create a model with these settings and random weights."""
    from stacl.models.base import Model

    kind = plugins.find("models", settings.kind, Model)  # type: ignore[type-abstract]
    return kind.build(settings.resolved(), len(source), len(target), shared)
