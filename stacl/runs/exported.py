"""The folder of exported graphs and weights, with a manifest of sizes and checksums."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stacl.engines.kv_cache import Sizes
from stacl.engines.onnx import READ, WEIGHTS, WRITE, OnnxEngine
from stacl.support.errors import UserError
from stacl.support.files import checksum

FORMAT = 1
MANIFEST = "manifest.json"
_VOCABULARY = "vocabulary/"  # beside the exported folder


def write_manifest(folder: Path, sizes: Sizes, facts: dict[str, Any], vocabulary: Path | None = None) -> None:
    """Write the sizes and the checksums of the files in the folder and of the vocabulary."""
    sums = {name: checksum(folder / name) for name in (READ, WRITE, WEIGHTS)}
    if vocabulary is not None:
        sums |= {f"{_VOCABULARY}{file.name}": checksum(file) for file in sorted(vocabulary.glob("*.model"))}
    content = {"format": FORMAT, "sizes": asdict(sizes), "checksums": sums, "facts": facts}
    (folder / MANIFEST).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def verified(folder: Path) -> tuple[Sizes, str]:
    """Verify the checksums of all files, and return the sizes and the checksum of the weights."""
    if not (folder / MANIFEST).is_file():
        raise UserError(f"{folder} is not an exported model: it has no {MANIFEST}; create one with `stacl export`")
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        version = content["format"]
        if version != FORMAT:
            raise UserError(f"{folder} was exported by another version of stacl (format {version}, not {FORMAT})")
        sizes, sums = Sizes(**content["sizes"]), dict(content["checksums"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder} is damaged or not an exported stacl model: {error}") from None
    beside = {name: folder.parent / name for name in sums if name.startswith(_VOCABULARY)}
    for name, file in ({name: folder / name for name in (READ, WRITE, WEIGHTS)} | beside).items():
        if not file.is_file() or checksum(file) != sums.get(name):
            raise UserError(f"{file} is damaged: its checksum does not match; export the model again")
    return sizes, str(sums[WEIGHTS])


def load_engine(folder: Path) -> tuple[OnnxEngine, str]:
    """Return the engine of an exported folder, and the checksum of its weights."""
    sizes, fingerprint = verified(folder)
    return OnnxEngine.load(folder, sizes), fingerprint
