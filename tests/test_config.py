"""The config of a run: documented defaults, round trip, typed changes, and errors that name the field."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from stacl import config
from stacl.config import Config, DataSettings, ModelSettings
from stacl.support.errors import UserError
from tests.conftest import ROOT

LEAST = ['data.source="de"', 'data.target="en"', 'data.corpora=["copy"]']


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    path = tmp_path / "run.toml"
    path.write_text("", encoding="utf-8")
    return path


def leaves(kind: type = Config, where: str = "") -> Iterator[tuple[str, str, Any]]:
    """Every field that holds a value: its full name, its description and its type."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if dataclasses.is_dataclass(hint):
            yield from leaves(hint, f"{name}.")  # type: ignore[arg-type]
        else:
            plain, meta = get_args(hint)
            yield where + name, meta.description, plain


def value_of(settings: Config, name: str) -> Any:
    found: Any = settings
    for part in name.split("."):
        found = getattr(found, part)
    return found


def test_every_field_has_a_default_of_its_type_and_a_description() -> None:
    default = Config()
    assert len(list(leaves())) > 40
    for name, description, kind in leaves():
        assert len(description) > 10, name
        value = value_of(default, name)
        if get_origin(kind) is Literal:
            assert value in get_args(kind), name
        else:
            assert type(value) is (get_origin(kind) or kind), name


def test_the_described_config_loads_to_the_defaults(tmp_path: Path) -> None:
    path = tmp_path / "all.toml"
    path.write_text(config.describe(), encoding="utf-8")
    raw = tomllib.loads(config.describe())
    assert raw == dataclasses.asdict(Config())
    described = config.load(path, LEAST)
    named = dataclasses.replace(DataSettings(), source="de", target="en", corpora=["copy"])
    assert described == dataclasses.replace(Config(), data=named)
    for name, description, _ in leaves():
        line = next(line for line in config.describe().splitlines() if line.startswith(name.rpartition(".")[2] + " ="))
        assert "# " in line, name
        assert any(description in line for line in config.describe().splitlines()), name


def test_configs_do_not_share_lists(empty: Path) -> None:
    one, other = config.load(empty, LEAST), Config()
    one.data.corpora.append("reverse")
    one.data.valid.append("copy/val")
    assert Config().data.corpora == other.data.corpora == []
    assert Config().data.valid == []


def test_saved_and_loaded(empty: Path, tmp_path: Path) -> None:
    changed = config.load(
        empty,
        [
            *LEAST,
            "policy=wait-k:3,c=0.25",
            "train.rate=5e-4",
            "text.shared=false",
            "model.preset=tiny",
            'data.root="a \\" ü"',
        ],
    )
    config.save(changed, tmp_path / "saved.toml")
    assert config.load(tmp_path / "saved.toml") == changed
    again = tmp_path / "again.toml"
    config.save(config.load(tmp_path / "saved.toml"), again)
    assert again.read_text() == (tmp_path / "saved.toml").read_text()


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.toml")), ids=lambda path: path.stem)
def test_the_shipped_configs_load(path: Path) -> None:
    assert config.load(path).data.source


@pytest.mark.parametrize(
    ("change", "name", "expected"),
    [
        ("train.steps=7", "train.steps", 7),
        ("train.steps = 1_000", "train.steps", 1000),
        ("train.rate=3e-4", "train.rate", 3e-4),
        ("train.rate=1", "train.rate", 1.0),
        ("text.shared=false", "text.shared", False),
        ("policy=wait-k:3,c=0.25", "policy", "wait-k:3,c=0.25"),
        ('policy="full"', "policy", "full"),
        ("model.preset=base", "model.preset", "base"),
        ("data.corpora=reverse", "data.corpora", ["reverse"]),
        ('data.corpora=["copy", "reverse*2"]', "data.corpora", ["copy", "reverse*2"]),
        ("data.root=/some/where=else", "data.root", "/some/where=else"),
    ],
)
def test_changes_are_typed(empty: Path, change: str, name: str, expected: Any) -> None:
    found = value_of(config.load(empty, [*LEAST, change]), name)
    assert found == expected
    assert type(found) is type(expected)


def test_the_last_change_wins_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("[train]\nsteps = 5\nrate = 0.1\n")
    settings = config.load(path, [*LEAST, "train.steps=6", "train.steps=7"])
    assert (settings.train.steps, settings.train.rate) == (7, 0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("train.stpes=3", "there is no train.stpes; did you mean steps?"),
        ("modle.width=3", "there is no modle; did you mean model?"),
        ("train.steps=3.5", "train.steps must be a whole number, 1 or more, not 3.5"),
        ("train.steps=true", "train.steps must be a whole number, 1 or more, not True"),
        ("train.rate=fast", "train.rate must be a number from 1e-12 to 10.0, not 'fast'"),
        ("train.rate=nan", "train.rate must be a number from 1e-12 to 10.0, not nan"),
        ("text.shared=1", "text.shared must be true or false, not 1"),
        ("policy=3", "policy must be text in quotes, not 3"),
        ("data.corpora=[1]", "data.corpora must be a list of strings, not [1]"),
        ("train=3", "train must be a section with fields, not 3"),
        ("policy.k=3", "policy must be text in quotes, not {'k': 3}"),
        ("train.steps.x=3", "train.steps must be a whole number"),
        ("train.schedule=cosin", "must be one of inverse-sqrt, cosine, linear, constant, not 'cosin'"),
        ("=3", "--set takes section.field=value, not '=3'"),
        ("steps", "--set takes section.field=value, not 'steps'"),
        ("train.average=0", "train.average must be a whole number from 1 to 100, not 0"),
        ("text.vocabulary=70000", "text.vocabulary must be a whole number from 300 to 65535, not 70000"),
        ("model.width=130", "model.width must be a multiple of model.heads (4), not 130"),
        ('data.train_files=["a"]', "data.train_files must be two files"),
        ('data.train_files=["a", "b"]', "set exactly one of data.corpora"),
        ("data.corpora=[]", "set exactly one of data.corpora"),
        ("data.target=", "data.source and data.target must name the languages"),
        ("policy=wait-q", "no policy is called 'wait-q'; did you mean wait-k?"),
    ],
)
def test_errors_name_the_field(empty: Path, change: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        config.load(empty, [*LEAST, change])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_invalid_config_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no config file"):
        config.load(tmp_path / "absent.toml")
    for content in (b"[train\n", b"\xff\xfe", b"policy = wait-k\n"):
        (tmp_path / "broken.toml").write_bytes(content)
        with pytest.raises(UserError, match="is not a readable TOML file"):
            config.load(tmp_path / "broken.toml")
    with pytest.raises(UserError, match="is not a readable TOML file"):
        config.load(tmp_path)


def test_presets_fill_in_missing_sizes() -> None:
    tiny = ModelSettings(preset="tiny", width=64).resolved()
    assert (tiny.width, tiny.inner, tiny.heads, tiny.encoder_layers) == (64, 256, 4, 4)
    base = ModelSettings(preset="base").resolved()
    # SPEC 3: base = 6 layers, 512, 2048, 8 heads.
    assert (base.encoder_layers, base.decoder_layers, base.width, base.inner, base.heads) == (6, 6, 512, 2048, 8)
    assert base.resolved() == base
