"""stacl: simultaneous translation at a chosen latency.

Importing the package does not import torch: public names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stacl.support.version import __version__

if TYPE_CHECKING:
    from stacl.api import load
    from stacl.decoding.options import Decoding
    from stacl.live.sentence import Written
    from stacl.live.session import Session
    from stacl.live.translator import Translator
    from stacl.metrics import latency, measure
    from stacl.policies.base import Policy, policy
    from stacl.support.errors import UserError
    from stacl.traces.trace import Trace

# The module of each public name.
_MODULES = {
    "Decoding": "stacl.decoding.options",
    "Policy": "stacl.policies.base",
    "Session": "stacl.live.session",
    "Trace": "stacl.traces.trace",
    "Translator": "stacl.live.translator",
    "UserError": "stacl.support.errors",
    "Written": "stacl.live.sentence",
    "latency": "stacl.metrics",
    "load": "stacl.api",
    "measure": "stacl.metrics",
    "policy": "stacl.policies.base",
}

__all__ = [
    "Decoding",
    "Policy",
    "Session",
    "Trace",
    "Translator",
    "UserError",
    "Written",
    "__version__",
    "latency",
    "load",
    "measure",
    "policy",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'stacl' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
