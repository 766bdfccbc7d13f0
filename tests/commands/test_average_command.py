"""The mean of runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from stacl import api, config
from stacl.__main__ import main
from stacl.runs import checkpoint
from stacl.runs.folder import RunFolder, build_model
from stacl.training.warm_start import warm_start


@pytest.fixture
def another(copy_run: Path, tmp_path: Path) -> Path:
    """The run, a step further: other weights, the same pieces."""
    folder = tmp_path / "another"
    shutil.copytree(copy_run, folder)
    weights, _ = checkpoint.load_model(folder / "model.safetensors")
    moved = {name: tensor + 0.01 * torch.ones_like(tensor) for name, tensor in weights.items()}
    checkpoint.save_model(folder / "model.safetensors", moved, {"step": 201})
    return folder


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return checkpoint.load_model(folder / "model.safetensors")[0]


def test_the_mean_of_two_runs(
    copy_run: Path, another: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mean"
    assert main(["average", str(copy_run), str(another), str(another), "--out", str(out)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.partition(": validation loss ")[0] for line in said] == [str(copy_run), str(another), str(out)]
    one, other, mean = weights(copy_run), weights(another), weights(out)
    assert one.keys() == mean.keys()
    for name in one:
        torch.testing.assert_close(mean[name], (one[name] + 2 * other[name]) / 3)
    facts = checkpoint.model_facts(out / "model.safetensors")
    assert facts["averaged"] == 3
    assert f"{facts['valid']['loss']:.4f}" == said[-1].rpartition(" ")[2]
    assert api.load(out).translate("ba be bi", "wait-k:1")


def test_an_exported_model_may_be_one_of_them(
    copy_run: Path, another: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("onnx")
    assert main(["export", str(copy_run), str(tmp_path / "fast"), "--precision", "float32"]) == 0
    out = tmp_path / "mean"
    assert main(["average", str(tmp_path / "fast"), str(another), "--out", str(out)]) == 0
    one, other, mean = weights(copy_run), weights(another), weights(out)
    for name in one:
        torch.testing.assert_close(mean[name], (one[name] + other[name]) / 2)
    # A mean has no data of its own, and gets none: else it would look like a run that `--resume` may begin anew.
    assert main(["average", str(another), str(out), "--out", str(tmp_path / "again")]) == 0
    assert not (out / "data").exists()
    assert main(["average", str(another), str(tmp_path / "fast"), "--out", str(tmp_path / "none")]) == 2
    assert "no model" in capsys.readouterr().err


def grown(run: Path, folder: Path, change: str) -> tuple[Path, Any]:
    """A larger run that begins with another: its folder, still without weights of its size, and its model."""
    larger = folder / "larger"
    shutil.copytree(run, larger)
    settings = config.load(run / "config.toml", [change])
    config.save(settings, larger / "config.toml")
    vocabularies = RunFolder(run).vocabularies()
    model = build_model(settings.model, *vocabularies, settings.text.shared)
    warm_start(model, settings.model, run, *vocabularies)
    return larger, model


def test_a_shallower_model_that_the_last_began_with(
    copy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its missing layers add nothing, so that of half the new layers' outputs is left."""
    layers = config.load(copy_run / "config.toml").model.resolved().encoder_layers
    deep, model = grown(copy_run, tmp_path, f"model.encoder_layers={layers + 1}")
    with torch.no_grad():
        model.encoder_layers[layers].feed.down.bias += 0.5
    checkpoint.save_model(deep / "model.safetensors", model.state_dict(), {"step": 300})
    assert main(["average", str(copy_run), str(deep), "--out", str(tmp_path / "mean")]) == 0
    mean = weights(tmp_path / "mean")
    torch.testing.assert_close(mean[f"encoder_layers.{layers}.feed.down.bias"].mean(), torch.tensor(0.25))
    for name, tensor in weights(copy_run).items():
        torch.testing.assert_close(mean[name], tensor)
    assert main(["average", str(deep), str(copy_run), "--out", str(tmp_path / "none")]) == 2
    assert "does not belong to this model" in capsys.readouterr().err


def test_a_narrower_model_that_the_last_began_with(copy_run: Path, tmp_path: Path) -> None:
    inner = config.load(copy_run / "config.toml").model.resolved().inner
    wide, model = grown(copy_run, tmp_path, f"model.inner={2 * inner}")
    with torch.no_grad():
        model.encoder_layers[0].feed.down.weight[:, inner:] += 0.5
    checkpoint.save_model(wide / "model.safetensors", model.state_dict(), {"step": 300})
    assert main(["average", str(copy_run), str(wide), "--out", str(tmp_path / "mean")]) == 0
    mean, last = weights(tmp_path / "mean"), model.state_dict()
    changed = "encoder_layers.0.feed.down.weight"
    torch.testing.assert_close(mean.pop(changed), last.pop(changed) - torch.tensor([[0.0] * inner + [0.25] * inner]))
    for name, tensor in mean.items():
        torch.testing.assert_close(tensor, last[name])


def test_what_has_no_mean(copy_run: Path, another: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: object) -> str:
        assert main(["average", *map(str, arguments)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    out = tmp_path / "out"
    assert "at least two runs" in refused(copy_run, "--out", out)
    assert "already exists" in refused(copy_run, another, "--out", tmp_path)
    assert "no-run" in refused(tmp_path / "no-run", copy_run, "--out", out)
    translated = tmp_path / "translated"
    shutil.copytree(another, translated)
    text = (translated / "config.toml").read_text(encoding="utf-8")
    (translated / "config.toml").write_text(re.sub("(?m)^target = .*$", 'target = "fr"', text), encoding="utf-8")
    assert "cannot be averaged" in refused(translated, copy_run, "--out", out)
    (translated / "model.safetensors").unlink()
    shutil.copy(copy_run / "config.toml", translated)
    shutil.rmtree(translated / "data")
    assert "no model" in refused(copy_run, translated, "--out", out)
    assert not (translated / "data").exists()
    damaged = (another / "model.safetensors").read_bytes()
    (another / "model.safetensors").write_bytes(damaged[:-100])
    assert "is damaged" in refused(copy_run, another, "--out", out)
    (another / "vocabulary" / "source.model").write_bytes(b"other pieces")
    assert "cannot be averaged" in refused(another, copy_run, "--out", out)
    assert not out.exists()
