"""The door: `stacl.load`."""

from __future__ import annotations

from pathlib import Path

from stacl.live.translator import Translator
from stacl.policies.base import Policy
from stacl.policies.base import policy as parse_policy
from stacl.runs import pretrained
from stacl.runs.folder import RunFolder


def load(name: str | Path, engine: str = "auto", policy: str | Policy | None = None) -> Translator:
    """A translator from a shipped model (`de-en`), a run folder, or an exported one. Only a run folder needs torch.

    `engine`: `torch` takes the trained weights, `onnx` the exported ones, `auto` what the folder has, trained first.
    `policy`: the policy of sessions that name none.
    """
    folder = RunFolder(pretrained.find(name))
    chosen = None if policy is None else parse_policy(policy).decoding_policy()
    manifest = folder.manifest()
    source, target = folder.vocabularies(manifest.shared_vocabulary)
    runner, fingerprint = folder.engine(engine, manifest, source, target)
    return Translator(manifest, runner, source, target, fingerprint, chosen)
