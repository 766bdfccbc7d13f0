"""Exports a trained model to the files of the ONNX engine, which does not need torch (engines/onnx.py).

manifest.json, vocabulary/     what inference needs, as in the run folder
config.toml                    how it was trained
fast/manifest.json             sizes and checksums
fast/read.onnx, write.onnx     the graphs
fast/weights.bin               the weights of both, int8 or float32
"""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path
from typing import Any

from stacl import config
from stacl.engines.kv_cache import Sizes
from stacl.engines.onnx import READ, WRITE
from stacl.engines.torch import TorchEngine
from stacl.models.base import Model
from stacl.models.transformer import Transformer
from stacl.runs.exported import write_manifest
from stacl.runs.folder import RunFolder
from stacl.support.errors import UserError
from stacl.support.files import write_atomically

PRECISIONS = ("int8", "float32")
_HEAD = 8


def export(run: Path, out: Path, precision: str = "int8") -> Path:
    """Export a run so that `stacl.load` opens it without torch. `out` may be the run folder itself."""
    trained = RunFolder(run)
    if not trained.weights.is_file():
        raise UserError(f"{run} has no trained weights; name a run folder of `stacl train`")
    manifest = trained.manifest()
    engine, fingerprint = trained.engine("torch", manifest, *trained.vocabularies(manifest.shared_vocabulary))
    assert isinstance(engine, TorchEngine)
    model, facts = engine.model, {"weights": fingerprint}

    def write(folder: Path) -> None:
        made = RunFolder(folder)
        export_model(model, made.exported, precision, facts, trained.vocabulary)
        manifest.save(made.manifest_file)
        if folder.resolve() != run.resolve():
            config.save(_without_folders(trained.settings()), made.config)
            write_atomically(made.vocabulary, lambda partial: _copy(trained.vocabulary, partial))

    if out.exists():
        write(out)
    else:
        write_atomically(out, write)  # a kill leaves no incomplete folder
    return out


def export_model(
    model: Model,
    folder: Path,
    precision: str = "int8",
    facts: dict[str, Any] | None = None,
    vocabulary: Path | None = None,
) -> None:
    """Write the graphs, the weights and the manifest of one model."""
    graphs = _graphs()
    sizes = _sizes(model, precision)
    tensors = {name: tensor.detach().cpu().float().numpy() for name, tensor in model.state_dict().items()}
    inner = len(tensors["encoder_layers.0.feed.up.bias"])
    if precision == "int8" and not (graphs.block_of(sizes.width) and graphs.block_of(inner)):
        multiple = graphs.SMALLEST_BLOCK
        raise UserError(f"int8 requires widths that are multiples of {multiple}; use --precision float32")

    def write(partial: Path) -> None:
        partial.mkdir()
        weights = graphs.Weights()
        (partial / READ).write_bytes(graphs.reading(sizes, tensors, weights).SerializeToString())
        (partial / WRITE).write_bytes(graphs.writing(sizes, tensors, weights).SerializeToString())
        weights.save(partial)
        write_manifest(partial, sizes, facts or {}, vocabulary)

    write_atomically(folder, write)


def _sizes(model: Model, precision: str) -> Sizes:
    if precision not in PRECISIONS:
        raise UserError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")
    if not isinstance(model, Transformer):
        raise UserError(f"only Transformers can be exported, not {type(model).__name__}")
    layer: Any = model.encoder_layers[0]
    heads = layer.attention.heads
    if model.width // heads % _HEAD:  # required by ONNX Runtime's attention
        raise UserError(f"the size of a head must be a multiple of {_HEAD} for export, not {model.width // heads}")
    return Sizes(
        encoder="prefix" if model.prefix else "causal",
        precision=precision,
        pieces=len(model.bias),
        width=model.width,
        heads=heads,
        encoder_layers=len(model.encoder_layers),
        decoder_layers=len(model.decoder_layers),
    )


def _without_folders(settings: config.Config) -> config.Config:
    """Remove the folders of the training data from the config. The file names stay."""
    data = settings.data
    train, valid = ([Path(file).name for file in files] for files in (data.train_files, data.valid_files))
    corpora = [re.sub(r"=[^,]*/", "=", spec) for spec in data.corpora]  # files:path=FOLDER/NAME
    data = dataclasses.replace(data, root="", corpora=corpora, train_files=train, valid_files=valid)
    model = dataclasses.replace(settings.model, start=Path(settings.model.start).name)
    return dataclasses.replace(settings, data=data, model=model)


def _copy(source: Path, partial: Path) -> None:
    shutil.copytree(source, partial)


def _graphs() -> Any:
    try:
        from stacl.export import graphs
    except ImportError:
        raise UserError("onnx is not installed; install stacl[export]") from None
    return graphs
