"""The exported engine: the same logits as the model, the same words, and no torch."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stacl import api
from stacl.corpora.base import corpus
from stacl.decoding.options import Decoding
from stacl.engines.onnx import WEIGHTS, OnnxEngine, positions
from stacl.engines.torch import TorchEngine
from stacl.export.onnx import export, export_model
from stacl.live.translator import Translator
from stacl.models import transformer
from stacl.models.batch import Batch
from stacl.models.masks import reading, visible_pieces
from stacl.models.transformer import Transformer
from stacl.policies.base import policy
from stacl.runs.exported import MANIFEST, load_engine
from stacl.runs.folder import EXPORTED
from stacl.support.errors import UserError
from stacl.text.subwords import BEGIN
from tests.conftest import ROOT
from tests.helpers import GERMAN, VOCABULARY, model_of, random_batch, random_translator, row_of, tiny_models

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
MODELS = {name: model for name, model in tiny_models().items() if isinstance(model, Transformer)}
POLICIES = ["full", "none", "wait-k:1", "wait-k:3", "wait-k:9", "wait-k:2,c=0.25", "wait-k:1-4"]
# int8 rounds weights and activations. The tiny random model has logits of about 1.
TOLERANCE = {"float32": 1e-4, "int8": 0.1}
everywhere = pytest.mark.parametrize("unit", ["word", "piece"])
every_policy = pytest.mark.parametrize("spec", POLICIES)
every_model = pytest.mark.parametrize("name", MODELS)
every_precision = pytest.mark.parametrize("precision", TOLERANCE)


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], OnnxEngine]:
    folder = tmp_path_factory.mktemp("engines")
    found = {}
    for name, model in MODELS.items():
        for precision in TOLERANCE:
            export_model(model, folder / name / precision, precision)
            found[name, precision] = load_engine(folder / name / precision)[0]
    return found


def masked(name: str, batch: Batch, spec: str, unit: str) -> tuple[np.ndarray, torch.Tensor]:
    g = reading(policy(spec, unit), batch, random.Random(3))
    with torch.no_grad():
        return MODELS[name](batch, g).numpy(), g


def close(found: np.ndarray, expected: np.ndarray, precision: str) -> None:
    np.testing.assert_allclose(found, expected, atol=TOLERANCE[precision], rtol=0)


@everywhere
@every_policy
@every_model
@every_precision
def test_live_equals_masked(
    engines: dict[tuple[str, str], OnnxEngine], name: str, precision: str, spec: str, unit: str
) -> None:
    engine, batch = engines[name, precision], random_batch(unit)
    logits, g = masked(name, batch, spec, unit)
    for row in range(batch.size):
        source, units, fed = row_of(batch, row)
        state, done = engine.start(), 0
        for step, previous in enumerate(fed):
            due = sum(number <= g[row, step] for number in units)
            while done < due:  # a few pieces at a time, as words arrive
                upto = min(due, done + 2)
                state = engine.read(state, np.array([source[done:upto]]))
                done = int(upto)
            state, live = engine.write(state, np.array([previous]))
            close(live[0], logits[row, step], precision)


@everywhere
@every_policy
@every_model
@every_precision
def test_batched_equals_masked(
    engines: dict[tuple[str, str], OnnxEngine], name: str, precision: str, spec: str, unit: str
) -> None:
    """Rows with different progress are decoded together with `visible`."""
    engine, batch = engines[name, precision], random_batch(unit)
    logits, g = masked(name, batch, spec, unit)
    visible = visible_pieces(batch.source_units, g).numpy()
    state = engine.read(engine.start(batch.size), batch.source.numpy())
    for step in range(batch.target_in.shape[1]):
        state, live = engine.write(state, batch.target_in[:, step].numpy(), visible[:, step])
        real = batch.real[:, step].numpy()
        close(live[real], logits[:, step][real], precision)


@every_model
def test_several_rows_may_read_in_parts(engines: dict[tuple[str, str], OnnxEngine], name: str) -> None:
    engine, pieces = engines[name, "float32"], random_batch("word").source.numpy()
    at_once = engine.read(engine.start(len(pieces)), pieces)
    in_parts = engine.start(len(pieces))
    fed = np.full(len(pieces), BEGIN)
    for upto in range(0, pieces.shape[1], 3):
        in_parts = engine.read(in_parts, pieces[:, upto : upto + 3])
        engine.write(in_parts, fed)
    close(engine.write(in_parts, fed)[1], engine.write(at_once, fed)[1], "float32")


@every_model
def test_long_sentences_outgrow_the_first_buffers(engines: dict[tuple[str, str], OnnxEngine], name: str) -> None:
    engine, reference = engines[name, "float32"], TorchEngine(MODELS[name])
    source = np.random.default_rng(0).integers(4, VOCABULARY, 600)
    read = {"causal": [2, 4, 90, 600], "prefix": [2, 4, 90]}[name.split("-")[1]]
    both_engines: tuple[Any, Any] = (engine, reference)
    states = [engine.start(), reference.start()]
    for before, after in zip([0, *read], read, strict=False):
        states = [e.read(s, source[None, before:after]) for e, s in zip(both_engines, states, strict=True)]
        for piece in source[:60]:
            both = [e.write(s, piece[None]) for e, s in zip(both_engines, states, strict=True)]
            states = [state for state, _ in both]
            close(both[0][1], both[1][1], "float32")


@every_model
def test_states_are_immutable(engines: dict[tuple[str, str], OnnxEngine], name: str) -> None:
    """Reading and writing do not change the old state, so it can be used again."""
    engine = engines[name, "float32"]
    before = engine.read(engine.start(), np.array([[5, 6, 7]]))
    before, first = engine.write(before, np.array([2]))
    _, expected = engine.write(before, np.array([10]))
    ahead = engine.read(before, np.array([[9, 12]]))
    ahead, _ = engine.write(ahead, np.array([8]))
    aside = engine.read(before, np.array([[20, 21, 22]]))
    aside, other = engine.write(aside, np.array([10]))
    engine.write(engine.write(ahead, np.array([9]))[0], np.array([11]))
    _, again = engine.write(before, np.array([10]))
    assert np.array_equal(expected, again)
    assert not np.allclose(expected, other, atol=1e-4)
    assert not np.allclose(first, expected, atol=1e-4)
    again[:] = -np.inf  # the caller may change the logits
    assert np.array_equal(engine.write(before, np.array([10]))[1], expected)


@every_model
def test_one_state_serves_many_threads(engines: dict[tuple[str, str], OnnxEngine], name: str) -> None:
    engine = engines[name, "float32"]
    common = engine.read(engine.start(), np.array([[5, 6, 7]]))
    common, _ = engine.write(common, np.array([BEGIN]))

    def translated(seed: int) -> np.ndarray:
        state, found = common, []
        for piece in np.random.default_rng(seed).integers(4, VOCABULARY, 50):
            state = engine.read(state, piece[None, None])
            state, logits = engine.write(state, piece[None])
            found.append(logits)
        return np.concatenate(found)

    alone = [translated(seed) for seed in range(4)]
    together: dict[int, np.ndarray] = {}
    threads = [
        threading.Thread(target=lambda seed=seed: together.update({seed: translated(seed)})) for seed in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, expected in enumerate(alone):
        close(together[seed], expected, "float32")


@every_model
def test_rows_can_be_selected(engines: dict[tuple[str, str], OnnxEngine], name: str) -> None:
    engine, batch = engines[name, "float32"], random_batch("word")
    visible, rows = np.array([3, 2, 4, 1]), np.array([2, 0, 0])
    state = engine.read(engine.start(batch.size), batch.source.numpy())
    unread = engine.select(state, rows)  # before anything was encoded
    state, _ = engine.write(state, batch.target_in[:, 0].numpy(), visible)
    _, logits = engine.write(state, batch.target_in[:, 1].numpy(), visible)
    unread, _ = engine.write(unread, batch.target_in[rows, 0].numpy(), visible[rows])
    for chosen in (engine.select(state, rows), unread):
        close(engine.write(chosen, batch.target_in[rows, 1].numpy(), visible[rows])[1], logits[rows], "float32")


@every_model
def test_no_peeking(engines: dict[tuple[str, str], OnnxEngine], name: str) -> None:
    """Pieces after the visible ones do not change a single bit."""
    engine, pieces = engines[name, "int8"], random_batch("word").source.numpy()
    other = pieces.copy()
    other[:, 4:] = (other[:, 4:] * 7 + 5) % VOCABULARY
    visible, fed = np.array([0, 2, 3, 4]), np.full(4, BEGIN)
    one, two = (engine.write(engine.read(engine.start(4), p), fed, visible)[1] for p in (pieces, other))
    assert np.array_equal(one, two)


def test_positions_are_those_of_the_model() -> None:
    expected = transformer.positions(0, 3000, 18, torch.device("cpu")).numpy()
    np.testing.assert_allclose(positions(3000, 18), expected, atol=1e-4)


@every_model
@pytest.mark.parametrize(("reading", "beam"), [("wait-k:1", 1), ("full", 1), ("wait-k:3,unit=piece", 3)])
def test_words_are_those_of_torch(tmp_path: Path, name: str, reading: str, beam: int) -> None:
    """Whole lines and live sessions, greedy and with a beam."""
    translator = random_translator(name)
    export_model(model_of(translator.engine), tmp_path / EXPORTED, "float32")
    fast = Translator(
        translator.manifest,
        load_engine(tmp_path / EXPORTED)[0],
        translator.source_pieces,
        translator.target_pieces,
    )
    lines = GERMAN[:3]
    expected = translator.translate_lines(lines, reading, decoding=Decoding(beam=beam))
    found = fast.translate_lines(lines, reading, decoding=Decoding(beam=beam))
    assert [trace.target for trace in found] == [trace.target for trace in expected]
    with fast.stream(reading, decoding=Decoding(beam=beam)) as live:
        said = [word for spoken in lines[0].split() for word in live.read(spoken)] + live.close()
    assert tuple(word.text for word in said) == expected[0].target


def test_a_vocabulary_for_both_languages_is_stored_once(tmp_path: Path) -> None:
    size: dict[str, Any] = {"width": 64, "inner": 128, "heads": 4, "encoder_layers": 1, "decoder_layers": 1}
    for shared in (True, False):
        export_model(Transformer(4000, 4000, **size, shared=shared), tmp_path / str(shared), "int8")
    once, twice = ((tmp_path / str(shared) / WEIGHTS).stat().st_size for shared in (True, False))
    model = Transformer(4000, 4000, **size, shared=True)
    assert once < 1.15 * sum(weight.numel() for weight in model.parameters())
    assert twice > once + 4000 * 64


def test_models_that_cannot_be_exported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Transformers"):
        export_model(tiny_models()["rnn"], tmp_path / "rnn")
    with pytest.raises(UserError, match="int8, float32"):
        export_model(MODELS["transformer-causal"], tmp_path / "half", "float16")
    with pytest.raises(UserError, match="multiple of 8 for export, not 6"):
        export_model(_small(width=12, heads=2), tmp_path / "narrow", "float32")
    with pytest.raises(UserError, match="float32"):
        export_model(_small(width=24, heads=3), tmp_path / "odd", "int8")
    export_model(_small(width=24, heads=3), tmp_path / "odd", "float32")
    load_engine(tmp_path / "odd")[0]


def _small(width: int, heads: int) -> Transformer:
    return Transformer(40, 40, width=width, inner=32, heads=heads, encoder_layers=1, decoder_layers=1)


def test_damage_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    export_model(MODELS["transformer-causal"], folder, "int8")
    weights = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    with pytest.raises(UserError, match=f"{WEIGHTS} is damaged"):
        load_engine(folder)[0]
    (folder / WEIGHTS).write_bytes(weights)
    load_engine(folder)[0]
    content = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(content | {"format": 99}))
    with pytest.raises(UserError, match="format 99"):
        load_engine(folder)[0]
    (folder / MANIFEST).write_text("{")
    with pytest.raises(UserError, match="damaged"):
        load_engine(folder)[0]
    with pytest.raises(UserError, match="is not an exported model"):
        load_engine(tmp_path)[0]


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = sys.modules["safetensors"] = sys.modules["onnx"] = None  # importing them fails
from stacl import api
translator = api.load(sys.argv[1])
lines = sys.argv[2].split("|")
with translator.stream() as live:
    said = [word.text for spoken in lines[0].split() for word in live.read(spoken)]
    said += [word.text for word in live.close()]
print(" ".join(said))
for trace in translator.translate_lines(lines):
    print(" ".join(trace.target))
"""


@pytest.mark.slow
@every_precision
def test_a_trained_model_translates_the_same_without_torch(copy_run: Path, tmp_path: Path, precision: str) -> None:
    """Translates with an exported folder in a Python process that cannot import torch."""
    folder = export(copy_run, tmp_path / "exported", precision)
    assert not (folder / "model.safetensors").exists()
    translator = api.load(copy_run)
    rng = random.Random(0)
    words = sorted({word for source, _ in corpus("copy").open("test") for word in source.split()})
    lines = [" ".join(rng.choices(words, k=rng.randint(1, 12))) for _ in range(100)]
    expected = [" ".join(trace.target) for trace in translator.translate_lines(lines)]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(folder), "|".join(lines)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    live, *found = done.stdout.splitlines()
    assert live == found[0]
    same = sum(one == two for one, two in zip(found, expected, strict=True))
    assert same == len(lines) if precision == "float32" else same >= 98


def logits_of(engine: OnnxEngine, pieces: np.ndarray, chosen: list[int] | None = None) -> np.ndarray:
    """Return logits [B, 3, V] after the pieces. From the second step on, only for the chosen rows if given."""
    found: list[np.ndarray] = []
    state, rows = engine.read(engine.start(len(pieces)), pieces), list(range(len(pieces)))
    for step in range(3):
        if step == 1 and chosen is not None:
            state, found, rows = engine.select(state, np.array(chosen)), [found[0][chosen]], chosen
        state, logits = engine.write(state, pieces[rows, step], np.arange(len(rows)) % 3 + 5)
        found.append(logits)
    return np.stack(found, axis=1)


def test_a_row_has_the_same_logits_in_every_batch() -> None:
    """Bit for bit: rounding can amplify a small difference until a word changes."""
    engine = api.load("photos-de-en").engine
    assert isinstance(engine, OnnxEngine)
    pieces = np.random.default_rng(1).integers(4, 4000, (9, 8))
    together = logits_of(engine, pieces)
    for size in range(1, 9):
        np.testing.assert_array_equal(logits_of(engine, pieces[:size]), together[:size])
    np.testing.assert_array_equal(logits_of(engine, pieces, [0, 1, 2]), together[:3])


def test_padding_changes_nothing(engines: dict[tuple[str, str], OnnxEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a processor that does not need the padding."""
    engine = engines["transformer-causal", "float32"]
    pieces = np.random.default_rng(2).integers(4, VOCABULARY, (5, 70))  # the buffers must grow
    expected = {size: logits_of(engine, pieces[:size]) for size in (1, 2, 5)}
    of_some = logits_of(engine, pieces, [3, 1, 1])
    monkeypatch.setattr(engine, "_paired", True)
    for size, logits in expected.items():
        close(logits_of(engine, pieces[:size]), logits, "float32")
    close(logits_of(engine, pieces, [3, 1, 1]), of_some, "float32")
