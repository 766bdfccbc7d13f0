"""Loading models: `stacl.load`."""

from __future__ import annotations

from pathlib import Path

from stacl.live.translator import Translator
from stacl.policies.base import Policy
from stacl.policies.base import policy as parse_policy
from stacl.runs import pretrained
from stacl.runs.folder import RunFolder


def load(name: str | Path, engine: str = "auto", policy: str | Policy | None = None) -> Translator:
    """Load a shipped model (`de-en`), a run folder or an exported model. Only a run folder needs torch.

    `engine` is `torch` for trained weights, `onnx` for exported ones, or `auto`: trained weights if there are any.
    `policy` is the default policy of sessions.
    """
    folder = RunFolder(pretrained.find(name))
    chosen = None if policy is None else parse_policy(policy).decoding_policy()
    manifest = folder.manifest()
    source, target = folder.vocabularies(manifest.shared_vocabulary)
    runner, fingerprint = folder.engine(engine, manifest, source, target)
    return Translator(manifest, runner, source, target, fingerprint, chosen)
