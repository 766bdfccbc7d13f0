"""Exported weights can be trained again, and a deeper or wider model starts with the output of a smaller one."""

from __future__ import annotations

import builtins
import itertools
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from stacl import api, config
from stacl.config import Config, DataSettings, ModelSettings
from stacl.engines.onnx import WEIGHTS
from stacl.engines.torch import TorchEngine
from stacl.export.onnx import export_model
from stacl.live.translator import Translator
from stacl.models.base import Model
from stacl.models.masks import reading
from stacl.models.rnn import Rnn
from stacl.models.transformer import Transformer
from stacl.policies.base import policy
from stacl.runs import checkpoint, pretrained
from stacl.runs.dequantize import trained_tensors
from stacl.runs.folder import EXPORTED, RunFolder, build_model
from stacl.runs.manifest import Manifest
from stacl.support.errors import UserError
from stacl.text.subwords import Subwords
from stacl.training.warm_start import warm_start
from tests.helpers import GERMAN, VOCABULARY, random_batch, random_translator

pytest.importorskip("onnx")
SIZE: dict[str, Any] = {"width": 32, "inner": 64, "heads": 2, "encoder_layers": 2, "decoder_layers": 3}


def random_model(encoder: str, shared: bool, **sizes: int) -> Transformer:
    """Return a model in which all weights, biases and norms differ."""
    torch.manual_seed(3)
    model = Transformer(VOCABULARY, VOCABULARY, **(SIZE | sizes), encoder=encoder, shared=shared).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("encoder", ["causal", "prefix"])
@pytest.mark.parametrize(("precision", "steps"), [("float32", 0.0), ("int8", 0.5)])
def test_exported_weights_are_restored(
    tmp_path: Path, precision: str, steps: float, encoder: str, shared: bool
) -> None:
    model = random_model(encoder, shared)
    export_model(model, tmp_path / EXPORTED, precision)
    found, expected = trained_tensors(RunFolder(tmp_path)), model.state_dict()
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == torch.float32
        step = 0.0
        if tensor.dim() == 2:  # 127 steps up to the largest value of a block, here a row of inputs
            step = tensor.abs().amax(1, keepdim=True) / 127
        assert torch.all((found[name] - tensor).abs() <= steps * step + 1e-6), name
    checkpoint.load_weights(random_model(encoder, shared), found, "x")  # fits the model


def test_trained_weights_are_preferred_to_exported_ones(tmp_path: Path) -> None:
    model = random_model("causal", True)
    export_model(model, tmp_path / EXPORTED)
    trained = {name: tensor + 1 for name, tensor in model.state_dict().items()}
    checkpoint.save_model(tmp_path / "model.safetensors", trained, {"step": 1})
    assert all(found.equal(trained[name]) for name, found in trained_tensors(RunFolder(tmp_path)).items())


def test_a_shipped_model_translates_the_same_in_torch() -> None:
    folder = pretrained.find("photos-de-en")
    settings, (source, target) = config.load(folder / "config.toml"), RunFolder(folder).vocabularies()
    model = build_model(settings.model, source, target, settings.text.shared).eval()
    warm_start(model, settings.model, folder, source, target)
    unpacked = Translator(Manifest.of(settings), TorchEngine(model), source, target)
    shipped = api.load("photos-de-en")
    same = [unpacked.translate(line, "wait-k:3") == shipped.translate(line, "wait-k:3") for line in GERMAN]
    assert sum(same) >= len(GERMAN) - 1  # the ONNX engine also rounds activations


def test_models_that_cannot_be_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="no model"):
        trained_tensors(RunFolder(tmp_path))
    export_model(random_model("causal", True), tmp_path / EXPORTED)
    real = builtins.__import__

    def without_onnx(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "onnx":
            raise ImportError(name)
        return real(name, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "__import__", without_onnx)
        with pytest.raises(UserError, match=r"install stacl\[export\]"):
            trained_tensors(RunFolder(tmp_path))
    weights = tmp_path / EXPORTED / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(UserError, match="is damaged"):
        trained_tensors(RunFolder(tmp_path))


@pytest.mark.parametrize("encoder", ["causal", "prefix"])
def test_a_deeper_model_starts_with_the_output_of_the_shallower_one(tmp_path: Path, encoder: str) -> None:
    pieces = random_translator().source_pieces
    shallow = random_model(encoder, True)
    deep = random_model(encoder, True, encoder_layers=5, decoder_layers=4)
    start(deep, shallow, tmp_path, pieces)
    # Each new layer learns, and differently from the others.
    same_logits(deep, shallow).square().sum().backward()
    new: list[Any] = [deep.encoder_layers[2], deep.encoder_layers[3], deep.encoder_layers[4], deep.decoder_layers[3]]
    gradients = [layer.feed.down.weight.grad for layer in new]
    assert all(gradient.abs().max() > 0 for gradient in gradients)
    assert not any(one.allclose(other) for one, other in itertools.pairwise(gradients))


@pytest.mark.parametrize("encoder", ["causal", "prefix"])
def test_a_wider_model_starts_with_the_output_of_the_narrower_one(tmp_path: Path, encoder: str) -> None:
    pieces = random_translator().source_pieces
    narrow = random_model(encoder, True)
    wide, twin = (random_model(encoder, True, inner=3 * SIZE["inner"] - 1, encoder_layers=3) for _ in range(2))
    start(wide, narrow, tmp_path, pieces)
    # Each new unit learns, and differently from the others.
    same_logits(wide, narrow).square().sum().backward()
    for layer in (*wide.encoder_layers, *wide.decoder_layers):
        gradients = layer.feed.down.weight.grad.T
        assert len(torch.unique(gradients, dim=0)) > 0.8 * len(gradients)  # some have no gradient in such a small batch
    # The growth is deterministic, so that separate runs can be averaged.
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(1)
    start(twin, narrow, tmp_path, pieces)
    assert all(torch.equal(tensor, wide.state_dict()[name]) for name, tensor in twin.state_dict().items())
    with pytest.raises(UserError, match="does not belong to this model"):
        start(random_model(encoder, True, inner=SIZE["inner"] - 1), narrow, tmp_path, pieces)


def test_models_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    pieces = random_translator().source_pieces
    with pytest.raises(UserError, match="does not belong to this model"):
        start(random_model("causal", True, encoder_layers=1), random_model("causal", True), tmp_path, pieces)
    with pytest.raises(UserError, match="does not belong to this model"):
        start(Rnn(VOCABULARY, VOCABULARY, **SIZE), random_model("causal", True), tmp_path, pieces)
    # The layers of an RNN cannot be added without changing the output.
    with pytest.raises(UserError, match="does not belong to this model"):
        start(
            Rnn(VOCABULARY, VOCABULARY, **(SIZE | {"encoder_layers": 4})),
            Rnn(VOCABULARY, VOCABULARY, **SIZE),
            tmp_path,
            pieces,
        )
    # Other head counts have the same shapes but compute something else.
    model = random_model("causal", True)
    with pytest.raises(UserError, match=r"model\.heads must be 2, as in .*, not 4"):
        start(model, model, tmp_path, pieces, heads=4)


def same_logits(larger: Model, smaller: Model) -> torch.Tensor:
    """Check that both models give the same logits for a batch, and return them."""
    batch = random_batch("word")
    g = reading(policy("wait-k:2"), batch, random.Random(1))
    logits = larger(batch, g)
    torch.testing.assert_close(logits, smaller(batch, g))
    return logits


def start(model: Model, other: Model, folder: Path, pieces: Subwords, heads: int = SIZE["heads"]) -> None:
    """Start `model` with the weights of `other`, which has the same vocabulary."""
    config.save(Config(data=DataSettings("de", "en", ["copy"]), model=ModelSettings(heads=2)), folder / "config.toml")
    checkpoint.save_model(folder / "model.safetensors", other.state_dict(), {"step": 1})
    (folder / "vocabulary").mkdir(exist_ok=True)
    pieces.save(folder / "vocabulary" / "source.model")
    warm_start(model, ModelSettings(heads=heads), folder, pieces, pieces)
