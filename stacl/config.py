"""The settings of a training run as typed data: one TOML file, with a default and a description for every field.

`stacl train --fields` prints all of them. The types carry the allowed ranges and choices; msgspec validates values
against them.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from stacl.policies.base import policy, runs_code
from stacl.support import plugins
from stacl.support.errors import UserError, suggest
from stacl.support.files import write_text_atomically


def _doc(sentence: str, low: float | None = None, high: float | None = None) -> Meta:
    """The description of a field, and the smallest and the largest value it may have."""
    return Meta(ge=low, le=high, description=sentence)


@dataclass(frozen=True)
class DataSettings:
    """Training data: corpora by name, or a pair of text files."""

    source: Annotated[str, _doc("source language, such as de, en or zh")] = ""
    target: Annotated[str, _doc("target language")] = ""
    corpora: Annotated[
        list[str], _doc("corpora to train on (`stacl data` lists them): NAME, NAME:option=value or NAME*3")
    ] = field(default_factory=list)
    valid: Annotated[list[str], _doc("validation sets, as NAME/SPLIT (default: those of the corpora)")] = field(
        default_factory=list
    )
    train_files: Annotated[list[str], _doc("your own text files [source, target], instead of corpora")] = field(
        default_factory=list
    )
    valid_files: Annotated[list[str], _doc("your own text files [source, target], instead of valid")] = field(
        default_factory=list
    )
    unseen: Annotated[
        list[str], _doc("test sets, as NAME/SPLIT: training pairs that share a side with one are dropped")
    ] = field(default_factory=list)
    root: Annotated[str, _doc("folder that holds the named corpora (default: the variable STACL_DATA)")] = ""
    max_words: Annotated[int, _doc("maximum number of words on either side of a pair", 1, 10_000)] = 150
    max_ratio: Annotated[float, _doc("maximum length ratio of a pair, after adding 3 words to each side", 1.0)] = 6.0
    duplicates: Annotated[bool, _doc("keep pairs that occur more than once")] = False
    careless: Annotated[
        float, _doc("share of training sources that are lower-cased and lose their final punctuation", 0.0, 1.0)
    ] = 0.0
    joined: Annotated[
        float, _doc("share of training pairs that get a short earlier pair and a comma in front", 0.0, 1.0)
    ] = 0.0


@dataclass(frozen=True)
class TextSettings:
    """Subword vocabulary."""

    vocabulary: Annotated[int, _doc("pieces in a vocabulary", 300, 65_535)] = 8000  # pieces are stored in 16 bits
    shared: Annotated[bool, _doc("one vocabulary and one embedding for both languages")] = True
    coverage: Annotated[
        float, _doc("share of the characters that the vocabulary covers; 0.9995 for Chinese", 0.9, 1.0)
    ] = 1.0


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"width": 128, "inner": 256, "heads": 4, "encoder_layers": 4, "decoder_layers": 4},
    "small": {"width": 256, "inner": 512, "heads": 4, "encoder_layers": 3, "decoder_layers": 3},
    "base": {"width": 512, "inner": 2048, "heads": 8, "encoder_layers": 6, "decoder_layers": 6},
}


@dataclass(frozen=True)
class ModelSettings:
    """The model. A size of 0 is taken from the preset."""

    kind: Annotated[str, _doc("model kind: transformer or rnn")] = "transformer"
    start: Annotated[
        str, _doc("warm start: run folder or shipped model; its vocabulary is used if the languages are the same")
    ] = ""
    preset: Annotated[Literal["tiny", "small", "base"], _doc("set of default sizes")] = "small"
    encoder: Annotated[
        Literal["causal", "prefix"],
        _doc("encoder of a Transformer; causal: one cached pass; prefix: the paper's, re-encoded for each prefix"),
    ] = "causal"
    width: Annotated[int, _doc("width of the hidden states", 0, 65_536)] = 0
    inner: Annotated[int, _doc("width of the feed-forward layers", 0, 65_536)] = 0
    heads: Annotated[int, _doc("attention heads", 0, 65_536)] = 0
    encoder_layers: Annotated[int, _doc("encoder layers", 0, 65_536)] = 0
    decoder_layers: Annotated[int, _doc("decoder layers", 0, 65_536)] = 0
    dropout: Annotated[float, _doc("dropout rate", 0.0, 0.99)] = 0.1

    def resolved(self) -> ModelSettings:
        """The same settings with every size filled in."""
        sizes = {name: getattr(self, name) or value for name, value in PRESETS[self.preset].items()}
        if sizes["width"] % sizes["heads"]:
            raise UserError(f"model.width must be a multiple of model.heads ({sizes['heads']}), not {sizes['width']}")
        return replace(self, **sizes)

    def sizes(self) -> dict[str, Any]:
        """The arguments that every model kind is built with."""
        return {name: getattr(self, name) for name in (*PRESETS[self.preset], "dropout")}


@dataclass(frozen=True)
class TrainSettings:
    """Training."""

    seed: Annotated[int, _doc("random seed of the run", 0, 2**63 - 1)] = 1
    budget: Annotated[int, _doc("batch size in source and target positions, padding included", 16)] = 4096
    accumulate: Annotated[int, _doc("batches per update (gradient accumulation)", 1)] = 1
    steps: Annotated[int, _doc("maximum number of updates", 1)] = 100_000
    epochs: Annotated[int, _doc("maximum number of epochs; 0: no limit", 0)] = 0
    optimizer: Annotated[
        Literal["adam", "muon"], _doc("adam: AdamW; muon: Muon for the layers, AdamW for the rest")
    ] = "adam"
    rate: Annotated[float, _doc("peak learning rate", 1e-12, 10.0)] = 1e-3
    warmup: Annotated[int, _doc("updates of linear warm-up", 0)] = 1000
    schedule: Annotated[
        Literal["inverse-sqrt", "cosine", "linear", "constant"], _doc("learning-rate schedule after the warm-up")
    ] = "inverse-sqrt"
    cooldown: Annotated[
        int, _doc("last updates before `steps` over which the rate falls to a hundredth, in any schedule", 0)
    ] = 0
    beta1: Annotated[float, _doc("beta1 of Adam (first moment)", 0.0, 0.9999)] = 0.9
    beta2: Annotated[float, _doc("beta2 of Adam (second moment)", 0.0, 0.999999)] = 0.98
    decay: Annotated[float, _doc("weight decay of matrices", 0.0, 1.0)] = 0.0
    clip: Annotated[float, _doc("maximum norm of the gradient; 0: no clipping", 0.0)] = 1.0
    smoothing: Annotated[float, _doc("label smoothing", 0.0, 0.99)] = 0.1
    samples: Annotated[int, _doc("minimum risk training: sampled translations per sentence; 0: off", 0, 1000)] = 0
    temperature: Annotated[float, _doc("minimum risk training: sampling temperature", 0.01, 100.0)] = 0.7
    references: Annotated[float, _doc("minimum risk training: weight of the loss on references", 0.0)] = 0.1
    validate_every: Annotated[int, _doc("updates between validations", 1)] = 500
    bleu_lines: Annotated[int, _doc("validation lines to translate for BLEU, from all sets; 0: none", 0)] = 500
    select: Annotated[Literal["bleu", "loss"], _doc("what the best model is selected by")] = "bleu"
    patience: Annotated[int, _doc("validations without improvement before training stops; 0: never", 0)] = 10
    average: Annotated[int, _doc("number of last validations whose weights are averaged; 1: none", 1, 100)] = 5
    save_every: Annotated[int, _doc("updates between checkpoints", 1)] = 500
    device: Annotated[str, _doc("cpu, cuda, cuda:N, or auto: a GPU if there is one")] = "auto"
    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"], _doc("auto: mixed precision on a GPU, else float32")
    ] = "auto"
    threads: Annotated[int, _doc("CPU threads; 0: all cores", 0, 1024)] = 0


@dataclass(frozen=True)
class Config:
    """One training run."""

    policy: Annotated[str, _doc("reading policy to train under, with its unit: wait-k:3,unit=piece")] = "wait-k:3"
    data: DataSettings = field(default_factory=DataSettings)
    text: TextSettings = field(default_factory=TextSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    train: TrainSettings = field(default_factory=TrainSettings)


def load(path: Path, changes: Sequence[str] = ()) -> Config:
    """Read and validate a TOML file, after applying `section.field=value` changes."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"no config file {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path} is not a readable TOML file: {error}") from None
    for change in changes:
        _apply(raw, change)
    return _check(_build(Config, raw, "", str(path)))


def save(config: Config, path: Path) -> None:
    import tomli_w

    write_text_atomically(path, tomli_w.dumps(dataclasses.asdict(config)))


def _check(config: Config) -> Config:
    """Check what the types of single fields cannot express."""
    if not runs_code(config.policy):  # a policy from a file is run by training and translation, not by reading a config
        policy(config.policy)
    plugins.check("models", config.model.kind)
    config.model.resolved()
    for name in ("train_files", "valid_files"):
        if len(getattr(config.data, name)) not in (0, 2):
            raise UserError(f"data.{name} must be two files, [source, target]")
    if not (config.data.source and config.data.target):
        raise UserError("data.source and data.target must name the languages, for example de and en")
    if bool(config.data.corpora) == bool(config.data.train_files):
        raise UserError("set exactly one of data.corpora (names, see `stacl data`) and data.train_files (two files)")
    if config.data.train_files and not (config.data.valid_files or config.data.valid):
        raise UserError("data.train_files needs a validation set: set data.valid_files or data.valid")
    if config.train.samples == 1:
        raise UserError("train.samples must be 2 or more, because samples are compared with each other, or 0 for none")
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", config.train.device):
        raise UserError(f"train.device must be auto, cpu, cuda or cuda:N, not {config.train.device!r}")
    return config


def _apply(raw: dict[str, Any], change: str) -> None:
    """Apply `a.b=c` to the raw table; c is parsed as TOML if possible, else taken as a plain string."""
    key, equals, text = change.partition("=")
    if not equals or not key.strip():
        raise UserError(f"--set takes section.field=value, not {change!r}")
    *sections, name = key.strip().split(".")
    for section in sections:
        raw = raw.setdefault(section, {})
        if not isinstance(raw, dict):
            raise UserError(f"--set {change}: {section} is not a section")
    try:
        raw[name] = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        raw[name] = text.strip()


def _build(kind: type, raw: object, where: str, path: str) -> Any:
    """An instance of the settings class `kind` from a raw table. Errors name the field, the expected and the given."""
    if not isinstance(raw, dict):
        raise UserError(f"{path}: {where.rstrip('.') or 'the file'} must be a section with fields, not {raw!r}")
    hints = get_type_hints(kind, include_extras=True)
    values = {}
    for name, value in raw.items():
        if name not in hints:
            raise UserError(f"{path}: there is no {where}{name}{suggest(name, hints)}")
        hint = hints[name]
        if dataclasses.is_dataclass(hint):
            assert isinstance(hint, type)
            values[name] = _build(hint, value, f"{where}{name}.", path)
            continue
        if get_args(hint)[0] == list[str] and isinstance(value, str):
            value = [value]
        try:
            values[name] = msgspec.convert(value, hint)
        except msgspec.ValidationError:
            raise UserError(f"{path}: {where}{name} must be {_expected(hint)}, not {value!r}") from None
    return kind(**values)


def _expected(hint: Any) -> str:
    """The values that a field takes, in words."""
    kind, meta = get_args(hint)
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    name = {int: "a whole number", float: "a number", str: "text in quotes", bool: "true or false"}.get(kind)
    if meta.ge is None:
        return name or "a list of strings"
    return f"{name} from {meta.ge} to {meta.le}" if meta.le is not None else f"{name}, {meta.ge} or more"


def describe() -> str:
    """All fields with their defaults and descriptions, as a valid TOML file."""
    lines = []
    default = Config()
    for name, hint in get_type_hints(Config, include_extras=True).items():
        value = getattr(default, name)
        if not dataclasses.is_dataclass(value):
            lines += [_line(name, hint, value), ""]
            continue
        lines += [f"[{name}]  # {(type(value).__doc__ or '').splitlines()[0]}"]
        hints = get_type_hints(type(value), include_extras=True)
        lines += [_line(entry.name, hints[entry.name], getattr(value, entry.name)) for entry in fields(value)] + [""]
    return "\n".join(lines).rstrip()


def _line(name: str, hint: Any, value: object) -> str:
    kind, meta = get_args(hint)
    choices = f" ({', '.join(get_args(kind))})" if get_origin(kind) is Literal else ""
    return f"{name} = {json.dumps(value)}".ljust(32) + f"# {meta.description}{choices}"
