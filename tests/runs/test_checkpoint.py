"""Saving and loading of checkpoints: atomic, with checksums, averaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from stacl import api, config
from stacl.runs import checkpoint
from stacl.runs.folder import build_model
from stacl.support.errors import UserError
from stacl.support.files import write_atomically, write_text_atomically
from stacl.text.subwords import Subwords
from tests.helpers import GERMAN, model_of


def model(seed: int = 1, width: int = 4) -> torch.nn.Module:
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(3, width), torch.nn.Linear(width, 2))


def trained(seed: int = 1) -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    net = model(seed)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(2, 3)).square().sum().backward()
        optimizer.step()
    return net, optimizer


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(one[name].equal(other[name]) for name in one)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_text_atomically(path, "old")

    def breaks(partial: Path) -> None:
        partial.write_text("half of the n")
        raise OSError(5, "the disk has gone")

    with pytest.raises(UserError, match="could not be saved: the disk has gone"):
        write_atomically(path, breaks)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_kill_leaves_the_old_one_and_the_next_save_cleans_up(tmp_path: Path) -> None:
    path = tmp_path / "folder"

    def write(content: str) -> Callable[[Path], None]:
        def fill(partial: Path) -> None:
            partial.mkdir()
            (partial / "inside").write_text(content)
            if content == "killed":
                raise SystemExit  # as if the process had ended here

        return fill

    write_atomically(path, write("old"))
    with pytest.raises(SystemExit):
        write_atomically(path, write("killed"))
    assert (path / "inside").read_text() == "old"
    write_atomically(path, write("new"))
    assert (path / "inside").read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


def test_a_checkpoint_is_restored_bit_for_bit(tmp_path: Path) -> None:
    net, optimizer = trained()
    checkpoint.save_checkpoint(tmp_path, net, optimizer, {"step": 3, "best": 1.5})
    other, moments = trained(seed=2)
    (path,) = checkpoint.checkpoints(tmp_path)
    assert path.name == "00000003"
    assert checkpoint.load_checkpoint(path, other, moments) == {"step": 3, "best": 1.5}
    assert same(other.state_dict(), net.state_dict())
    assert same(checkpoint.optimizer_tensors(moments), checkpoint.optimizer_tensors(optimizer))


def test_the_newest_are_kept(tmp_path: Path) -> None:
    net, optimizer = trained()
    for step in (5, 10, 15, 20):
        checkpoint.save_checkpoint(tmp_path, net, optimizer, {"step": step})
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == ["00000015", "00000020"]
    (tmp_path / "00000099").write_text("not a checkpoint")
    (tmp_path / ".partial-00000025").mkdir()
    assert [path.name for path in checkpoint.checkpoints(tmp_path)] == ["00000015", "00000020"]
    assert checkpoint.checkpoints(tmp_path / "nothing") == []


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors"])
@pytest.mark.parametrize("harm", ["flip", "cut", "remove"])
def test_a_damaged_checkpoint_is_named_and_changes_nothing(tmp_path: Path, name: str, harm: str) -> None:
    net, optimizer = trained()
    checkpoint.save_checkpoint(tmp_path, net, optimizer, {"step": 3})
    (path,) = checkpoint.checkpoints(tmp_path)
    content = bytearray((path / name).read_bytes())
    content[-3] ^= 4
    if harm == "remove":
        (path / name).unlink()
    else:
        (path / name).write_bytes(content if harm == "flip" else content[:-7])
    other, moments = trained(seed=2)
    before = {key: value.clone() for key, value in other.state_dict().items()}
    with pytest.raises(UserError, match=f"00000003/{name} is damaged; remove "):
        checkpoint.load_checkpoint(path, other, moments)
    assert same(other.state_dict(), before)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"format": 1}', "is damaged"),
        ('{"format": 1, "checksums": [], "progress": {}}', "is damaged"),
        ('{"format": 1, "checksums": {}, "progress": []}', "is damaged"),
        ('{"format": 1, "checksums": {}, "progress": {}}', "weights.safetensors is damaged"),
        (None, "another version of stacl"),
    ],
)
def test_a_state_that_cannot_be_read(tmp_path: Path, content: str | None, message: str) -> None:
    net, optimizer = trained()
    checkpoint.save_checkpoint(tmp_path, net, optimizer, {"step": 3})
    state = checkpoint.checkpoints(tmp_path)[0] / "state.json"
    state.write_text(content or json.dumps(json.loads(state.read_text()) | {"format": 2}))
    with pytest.raises(UserError, match=message):
        checkpoint.load_checkpoint(state.parent, net, optimizer)


def test_weights_of_another_model_are_refused() -> None:
    net = model()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    own = {key: value + 1 for key, value in before.items()}
    lacking = {key: value for key, value in own.items() if key != "1.bias"}
    for tensors, message in (
        (lacking, "lacks 1.bias"),
        (own | {"2.bias": torch.zeros(1)}, "has an unknown tensor 2.bias"),
        (own | {"0.weight": torch.zeros(9, 9)}, "has a different shape of 0.weight"),
    ):
        with pytest.raises(UserError, match=f"some file does not belong to this model: it {message}"):
            checkpoint.load_weights(net, tensors, "some file")
        assert same(net.state_dict(), before)
    checkpoint.load_weights(net, own, "some file")
    assert same(net.state_dict(), own)


def test_the_checksum_covers_names_types_shapes_and_values() -> None:
    tensors = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(2)}
    original = checkpoint.tensors_checksum(tensors)
    assert checkpoint.tensors_checksum(dict(reversed(tensors.items()))) == original
    strided = torch.arange(6.0).view(2, 3).t().contiguous().t()
    assert checkpoint.tensors_checksum(tensors | {"a": strided}) == original
    for changed in (
        {"a": tensors["a"], "c": tensors["b"]},
        tensors | {"a": tensors["a"].view(3, 2)},
        tensors | {"a": tensors["a"].double()},
        tensors | {"b": torch.tensor([1.0, 1.0000001])},
    ):
        assert checkpoint.tensors_checksum(changed) != original


def test_a_model_keeps_its_facts_and_its_checksum(tmp_path: Path) -> None:
    path, tensors = tmp_path / "model.safetensors", model().state_dict()
    checkpoint.save_model(path, tensors, {"bleu": 30.5})
    facts = checkpoint.model_facts(path)
    assert facts == {"format": 1, "bleu": 30.5, "checksum": checkpoint.tensors_checksum(tensors)}
    loaded, found = checkpoint.load_model(path)
    assert same(loaded, tensors)
    assert found == facts
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(UserError, match="checksum of its weights does not match"):
        checkpoint.load_model(path)
    path.write_bytes(content[:50])
    with pytest.raises(UserError, match="is damaged or not a stacl model"):
        checkpoint.load_model(path)
    checkpoint.save_tensors(path, tensors)
    with pytest.raises(UserError, match="is damaged or not a stacl model"):
        checkpoint.model_facts(path)
    with pytest.raises(UserError, match="no model"):
        checkpoint.model_facts(tmp_path / "nothing")


@pytest.mark.parametrize("moment", ["the facts were read", "the weights were read"])
def test_a_model_that_is_replaced_while_it_is_loaded_keeps_its_own_checksum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Training may replace the file: weights and checksum must belong to the same model."""
    sizes: dict[str, Any] = {"width": 8, "inner": 8, "heads": 1, "encoder_layers": 1, "decoder_layers": 1}
    data = config.DataSettings("art", "art", corpora=["copy"])
    settings = config.Config(model=config.ModelSettings(**sizes), data=data)
    config.save(settings, tmp_path / "config.toml")
    (tmp_path / "vocabulary").mkdir()
    pieces = Subwords.train([line.split() for line in GERMAN], 320)
    pieces.save(tmp_path / "vocabulary" / "source.model")
    torch.manual_seed(1)
    for name in ("model", "better"):
        weights = build_model(settings.model, pieces, pieces, settings.text.shared).state_dict()
        checkpoint.save_model(tmp_path / f"{name}.safetensors", weights, {})
    read_json, checksum_of = json.loads, checkpoint.tensors_checksum

    def replaced(value: Any) -> Any:
        if (tmp_path / "better.safetensors").exists():
            (tmp_path / "better.safetensors").replace(tmp_path / "model.safetensors")
        return value

    if moment == "the facts were read":
        monkeypatch.setattr(json, "loads", lambda text: replaced(read_json(text)))
    else:
        monkeypatch.setattr(checkpoint, "tensors_checksum", lambda tensors: replaced(checksum_of(tensors)))
    loaded = api.load(tmp_path)
    assert not (tmp_path / "better.safetensors").exists()
    assert loaded.fingerprint == checksum_of(model_of(loaded.engine).state_dict())


def test_tied_weights_are_saved(tmp_path: Path) -> None:
    shared = torch.arange(4.0)
    checkpoint.save_tensors(tmp_path / "x.safetensors", {"a": shared, "b": shared, "c": shared[1:]})
    found = checkpoint.load_tensors(tmp_path / "x.safetensors")
    assert same(found, {"a": shared, "b": shared, "c": shared[1:]})


def test_the_average_is_the_mean_in_double_precision(tmp_path: Path) -> None:
    torch.manual_seed(0)
    sets = [{"w": torch.randn(50, 7) * 1e4, "b": torch.randn(3)} for _ in range(5)]
    paths = [tmp_path / f"{number}.safetensors" for number in range(5)]
    for path, tensors in zip(paths, sets, strict=True):
        checkpoint.save_tensors(path, tensors)
    found = checkpoint.average(map(checkpoint.load_tensors, paths))
    for name, tensor in found.items():
        exact = torch.stack([tensors[name].double() for tensors in sets]).sum(0) / 5
        assert tensor.dtype == torch.float32
        assert tensor.equal(exact.float())
    assert same(checkpoint.average(map(checkpoint.load_tensors, paths[:1])), sets[0])
    with pytest.raises(UserError, match="does not exist"):
        checkpoint.average(map(checkpoint.load_tensors, [tmp_path / "nothing.safetensors"]))


def test_a_model_file_has_ordinary_permissions(tmp_path: Path) -> None:
    checkpoint.save_model(tmp_path / "model.safetensors", {"a": torch.zeros(2)}, {})
    (tmp_path / "any").touch()
    assert (tmp_path / "model.safetensors").stat().st_mode == (tmp_path / "any").stat().st_mode


@pytest.mark.parametrize("load", [checkpoint.load_model, checkpoint.load_tensors])
def test_a_missing_permission_is_not_reported_as_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: Callable[..., Any]
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    checkpoint.save_model(tmp_path / "model.safetensors", {"a": torch.zeros(2)}, {})
    monkeypatch.setattr("pathlib.Path.open", refused)
    with pytest.raises(UserError, match=r"model\.safetensors cannot be read: permission denied"):
        load(tmp_path / "model.safetensors")
