"""The inference manifest `manifest.json`: what inference needs to know about a model.

It holds languages, policy, architecture and tokenizer. It holds nothing about training, so a model still loads after a
field of the training config is renamed. Every run folder and every exported model has one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from stacl.config import Config, ModelSettings
from stacl.support.errors import UserError
from stacl.support.files import write_text_atomically

FORMAT = 1
Size = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class Architecture(msgspec.Struct, frozen=True):
    """The kind and the sizes of a model."""

    kind: str
    encoder: str
    width: Size
    inner: Size
    heads: Size
    encoder_layers: Size
    decoder_layers: Size

    def settings(self) -> ModelSettings:
        return ModelSettings(**msgspec.structs.asdict(self))


class Manifest(msgspec.Struct, frozen=True):
    """What inference needs. `policy` is the policy that the model was trained with."""

    format: int
    source: str
    target: str
    policy: str
    shared_vocabulary: bool
    architecture: Architecture

    @classmethod
    def of(cls, settings: Config) -> Manifest:
        """Return the manifest of a model that is trained with these settings."""
        model = settings.model.resolved()
        sizes = {name: getattr(model, name) for name in Architecture.__struct_fields__}
        return cls(
            FORMAT,
            settings.data.source,
            settings.data.target,
            settings.policy,
            settings.text.shared,
            Architecture(**sizes),
        )

    @classmethod
    def load(cls, path: Path) -> Manifest:
        try:
            found = msgspec.json.decode(path.read_bytes(), type=cls)
        except (OSError, msgspec.MsgspecError) as error:
            raise UserError(f"{path} is damaged or not a stacl manifest: {error}") from None
        if found.format != FORMAT:
            raise UserError(f"{path} was written by another version of stacl (format {found.format}, not {FORMAT})")
        return found

    def save(self, path: Path) -> None:
        write_text_atomically(path, msgspec.json.format(msgspec.json.encode(self), indent=1).decode() + "\n")
