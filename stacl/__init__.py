"""stacl: simultaneous translation, at a latency that you choose.

Importing the package imports no torch: public names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from stacl.errors import UserError
    from stacl.policies.base import policy
    from stacl.trace import Trace

_HOMES = {
    "Trace": "stacl.trace",
    "UserError": "stacl.errors",
    "policy": "stacl.policies.base",
}

__all__ = ["Trace", "UserError", "__version__", "policy"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'stacl' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
