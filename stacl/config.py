"""A training run as typed data: one TOML file, a default and a sentence for every field, and "did you mean".

`python -m stacl train --fields` prints all of them.
"""

from __future__ import annotations

import dataclasses
import math
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from stacl.policies.base import policy, runs_code
from stacl.support import plugins
from stacl.support.errors import UserError, suggest
from stacl.support.files import write_text_atomically


def _doc(default: Any, sentence: str, choices: Sequence[str] = ()) -> Any:
    """A field with its sentence; lists are made anew for each config."""
    metadata = {"doc": sentence, "choices": tuple(choices)}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class DataSettings:
    """From what: corpora by name, or a pair of text files."""

    source: str = _doc("", "language of the source, such as de, en or zh")
    target: str = _doc("", "language of the target")
    corpora: list[str] = _doc([], "corpora to train on, as `stacl data` lists them: NAME, NAME:option=value, NAME*3")
    valid: list[str] = _doc([], "validation sets, as NAME/SPLIT; else the corpora's own")
    train_files: list[str] = _doc([], "instead of corpora: your own text files, [source, target]")
    valid_files: list[str] = _doc([], "instead of valid: your own text files, [source, target]")
    unseen: list[str] = _doc([], "sets to measure on, as NAME/SPLIT: pairs that share a side with one are dropped")
    root: str = _doc("", "folder where named corpora lie; else the variable STACL_DATA")
    max_words: int = _doc(150, "pairs with more words on either side are dropped")
    max_ratio: float = _doc(6.0, "pairs with more than so many times the words, three added to both sides, are dropped")
    duplicates: bool = _doc(False, "keep pairs that stand in the corpus more than once")
    careless: float = _doc(0.0, "share of the training sources that lose their capitals and the mark at their end")
    joined: float = _doc(0.0, "share of the training pairs that get a short one before them, and a comma")


@dataclass(frozen=True)
class TextSettings:
    """Subword pieces."""

    vocabulary: int = _doc(8000, "pieces in a vocabulary (at most 65,535)")
    shared: bool = _doc(True, "one vocabulary and one embedding for both languages")
    coverage: float = _doc(1.0, "share of the characters that get pieces of their own; 0.9995 for Chinese")


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 128, "inner": 256, "heads": 4, "encoder_layers": 4, "decoder_layers": 4},
    "small": {"width": 256, "inner": 512, "heads": 4, "encoder_layers": 3, "decoder_layers": 3},
    "base": {"width": 512, "inner": 2048, "heads": 8, "encoder_layers": 6, "decoder_layers": 6},
}


@dataclass(frozen=True)
class ModelSettings:
    """What to train. A size of 0 is taken from the preset."""

    kind: str = _doc("transformer", "the model, a file of stacl/models/")
    start: str = _doc("", "run folder or shipped model to begin with; its vocabulary too, if of the same languages")
    preset: str = _doc("small", "sizes to start from", tuple(PRESETS))
    encoder: str = _doc(
        "causal", "of a Transformer. causal: one cached pass; prefix: the paper's, re-encoded", ("causal", "prefix")
    )
    width: int = _doc(0, "width of the states")
    inner: int = _doc(0, "width inside the feed-forward layers")
    heads: int = _doc(0, "attention heads")
    encoder_layers: int = _doc(0, "layers of the encoder")
    decoder_layers: int = _doc(0, "layers of the decoder")
    dropout: float = _doc(0.1, "share of the activations that training switches off")

    def resolved(self) -> ModelSettings:
        """Every size filled in."""
        sizes = {name: getattr(self, name) or value for name, value in PRESETS[self.preset].items()}
        if sizes["width"] % sizes["heads"]:
            raise UserError(f"model.width {sizes['width']} cannot be shared out among {sizes['heads']} heads")
        return replace(self, **sizes)

    def sizes(self) -> dict[str, Any]:
        """What every kind of model is made with."""
        return {name: getattr(self, name) for name in (*PRESETS[self.preset], "dropout")}


@dataclass(frozen=True)
class TrainSettings:
    """How to train."""

    seed: int = _doc(1, "everything random follows from it")
    budget: int = _doc(4096, "source and target positions in a batch, padding counted")
    accumulate: int = _doc(1, "batches added up before each update")
    steps: int = _doc(100_000, "updates at the most")
    epochs: int = _doc(0, "passes over the data at the most; 0: no limit")
    optimizer: str = _doc("adam", "adam; muon: Adam for embeddings, Muon for the layers", ("adam", "muon"))
    rate: float = _doc(1e-3, "highest learning rate")
    warmup: int = _doc(1000, "updates of linear warm-up")
    schedule: str = _doc(
        "inverse-sqrt",
        "how the learning rate falls after the warm-up",
        ("inverse-sqrt", "cosine", "linear", "constant"),
    )
    cooldown: int = _doc(0, "last updates before `steps` over which the rate falls to a hundredth, in any schedule")
    beta1: float = _doc(0.9, "Adam's first decay")
    beta2: float = _doc(0.98, "Adam's second decay")
    decay: float = _doc(0.0, "weight decay of matrices")
    clip: float = _doc(1.0, "largest norm of the gradient; 0: no clipping")
    smoothing: float = _doc(0.1, "label smoothing")
    samples: int = _doc(0, "translations of its own that a model learns from, of each sentence; 0: references alone")
    temperature: float = _doc(0.7, "with samples: how freely they are drawn; 1: as likely as the model thinks them")
    references: float = _doc(0.1, "with samples: how much the references still count")
    validate_every: int = _doc(500, "updates between validations")
    bleu_lines: int = _doc(500, "validation lines to translate for BLEU, from all sets alike; 0: none")
    select: str = _doc("bleu", "what the best model is chosen by", ("bleu", "loss"))
    patience: int = _doc(10, "validations without a better one before training stops; 0: never")
    average: int = _doc(5, "last validations whose weights are averaged into the model; 1: none")
    save_every: int = _doc(500, "updates between checkpoints to resume from")
    device: str = _doc("auto", "cpu, cuda, cuda:1, or auto: a GPU where there is one")
    precision: str = _doc("auto", "auto: mixed on a GPU, else float32", ("auto", "float32", "bfloat16", "float16"))
    threads: int = _doc(0, "CPU threads; 0: as many as torch finds cores")


@dataclass(frozen=True)
class Config:
    """One run."""

    policy: str = _doc("wait-k:3", "reading policy to train under, with its unit: wait-k:3,unit=piece")
    data: DataSettings = field(default_factory=DataSettings)
    text: TextSettings = field(default_factory=TextSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    train: TrainSettings = field(default_factory=TrainSettings)


def load(path: Path, changes: Sequence[str] = ()) -> Config:
    """A config from a TOML file, with `a.b=c` changes on top, checked."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"no config file {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path} is not a readable TOML file: {error}") from None
    for change in changes:
        _apply(raw, change)
    return check(_build(Config, raw, "", str(path)))


def save(config: Config, path: Path) -> None:
    import tomli_w

    write_text_atomically(path, tomli_w.dumps(dataclasses.asdict(config)))


def check(config: Config) -> Config:
    """What types cannot say."""
    if not runs_code(config.policy):  # who trains or translates under it will run it, not who reads the config
        policy(config.policy)
    plugins.check("models", config.model.kind)
    config.model.resolved()
    for section, name, low, high in _RANGES:
        value = getattr(getattr(config, section), name)
        if not low <= value <= high:
            bounds = f"from {low}" if high == math.inf else f"from {low} to {high}"
            raise UserError(f"{section}.{name} must be {bounds}, not {value}")
    for name in ("train_files", "valid_files"):
        if len(getattr(config.data, name)) not in (0, 2):
            raise UserError(f"data.{name} must be two files, [source, target]")
    if not (config.data.source and config.data.target):
        raise UserError("data.source and data.target must say the languages, for example de and en")
    if bool(config.data.corpora) == bool(config.data.train_files):
        raise UserError("data needs corpora (names, see `stacl data`) or train_files (two files), one of them")
    if config.data.train_files and not (config.data.valid_files or config.data.valid):
        raise UserError("data.train_files has no validation set of its own; say data.valid_files or data.valid")
    if config.train.samples == 1:
        raise UserError("train.samples are compared with one another: 2 or more, or 0 to learn from references alone")
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", config.train.device):
        raise UserError(f"train.device must be auto, cpu, cuda or cuda:N, not {config.train.device!r}")
    return config


_RANGES: tuple[tuple[str, str, float, float], ...] = (
    ("data", "max_words", 1, 10_000),
    ("data", "max_ratio", 1.0, math.inf),
    ("data", "careless", 0.0, 1.0),
    ("data", "joined", 0.0, 1.0),
    ("text", "vocabulary", 300, 65_535),  # pieces are stored in 16 bits
    ("text", "coverage", 0.9, 1.0),
    ("model", "dropout", 0.0, 0.99),
    *(("model", name, 0, 65_536) for name in PRESETS["small"]),
    ("train", "seed", 0, 2**63 - 1),
    ("train", "beta1", 0.0, 0.9999),
    ("train", "beta2", 0.0, 0.999999),
    ("train", "decay", 0.0, 1.0),
    ("train", "budget", 16, math.inf),
    ("train", "accumulate", 1, math.inf),
    ("train", "steps", 1, math.inf),
    ("train", "epochs", 0, math.inf),
    ("train", "rate", 1e-12, 10.0),
    ("train", "warmup", 0, math.inf),
    ("train", "cooldown", 0, math.inf),
    ("train", "smoothing", 0.0, 0.99),
    ("train", "samples", 0, 1000),
    ("train", "temperature", 0.01, 100.0),
    ("train", "references", 0.0, math.inf),
    ("train", "clip", 0.0, math.inf),
    ("train", "validate_every", 1, math.inf),
    ("train", "save_every", 1, math.inf),
    ("train", "bleu_lines", 0, math.inf),
    ("train", "patience", 0, math.inf),
    ("train", "average", 1, 100),
    ("train", "threads", 0, 1024),
)


def _apply(raw: dict[str, Any], change: str) -> None:
    """`a.b=c` into the raw table; c is read as TOML where it is TOML, else as a plain string."""
    key, equals, text = change.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--set takes section.field=value, not {change!r}")
    *sections, name = key.strip().split(".")
    for section in sections:
        raw = raw.setdefault(section, {})
        if not isinstance(raw, dict):
            raise UserError(f"--set {change}: {section} is no section")
    try:
        raw[name] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        raw[name] = text.strip()


def _build(kind: type, raw: Any, where: str, path: str) -> Any:
    """A typed section from a raw table; unknown names and wrong types are named with their place."""
    if not isinstance(raw, dict):
        raise UserError(f"{path}: {where.rstrip('.') or 'the file'} must be a section with fields, not {raw!r}")
    known = {f.name: f for f in fields(kind)}
    hints = get_type_hints(kind)
    values = {}
    for name, value in raw.items():
        if name not in known:
            raise UserError(f"{path}: there is no {where}{name}{suggest(name, known)}")
        if dataclasses.is_dataclass(hints[name]):
            assert isinstance(hints[name], type)
            values[name] = _build(hints[name], value, f"{where}{name}.", path)
        else:
            values[name] = _typed(value, hints[name], f"{path}: {where}{name}")
            choices = known[name].metadata["choices"]
            if choices and value not in choices:
                raise UserError(f"{path}: {where}{name} must be one of {', '.join(choices)}, not {value!r}")
    return kind(**values)


def _typed(value: Any, kind: Any, where: str) -> Any:
    if kind is float and type(value) is int:
        return float(value)
    if get_origin(kind) is list:
        if isinstance(value, str):
            value = [value]
        if isinstance(value, list) and all(isinstance(item, get_args(kind)[0]) for item in value):
            return value
        raise UserError(f"{where} must be a list of strings, not {value!r}")
    if type(value) is not kind:
        expected = {int: "a whole number", float: "a number", str: "text in quotes", bool: "true or false"}[kind]
        raise UserError(f"{where} must be {expected}, not {value!r}")
    return value


def describe() -> str:
    """All fields with their defaults and sentences, as a TOML file that could be used."""
    lines = []
    default = Config()
    for section in fields(Config):
        value = getattr(default, section.name)
        if not dataclasses.is_dataclass(value):
            lines += [_line(section, value), ""]
            continue
        lines += [f"[{section.name}]  # {(type(value).__doc__ or '').splitlines()[0]}"]
        lines += [_line(entry, getattr(value, entry.name)) for entry in fields(value)] + [""]
    return "\n".join(lines).rstrip()


def _line(entry: Any, value: Any) -> str:
    import json

    choices = f" ({', '.join(entry.metadata['choices'])})" if entry.metadata["choices"] else ""
    return f"{entry.name} = {json.dumps(value)}".ljust(32) + f"# {entry.metadata['doc']}{choices}"
