"""Plugins found by file name: the class in `policies/wait_k.py` is the policy `wait-k`.

Each plugin folder (policies, metrics, models, corpora, commands) is an extension point: adding a file adds a name.
There is no registry to update. Modules that are not plugins begin with an underscore or are listed in the package's
`HELPERS`.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import TypeVar

from stacl.support.errors import UserError, suggest

Kind = TypeVar("Kind")


@cache
def names(folder: str) -> tuple[str, ...]:
    """Return the names of the plugins in a folder, sorted.

    >>> "full" in names("policies")
    True
    """
    package = importlib.import_module(f"stacl.{folder}")
    helpers = ("base", *getattr(package, "HELPERS", ()))
    found = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name.replace("_", "-") for name in found if name not in helpers and not name.startswith("_")))


def check(folder: str, name: str) -> None:
    """Raise a UserError with a suggestion if the name is unknown. No plugin is imported: a model would import torch."""
    known = names(folder)
    if name not in known:
        kind = {"policies": "policy", "corpora": "corpus"}.get(folder, folder.rstrip("s"))
        raise UserError(f"no {kind} is called {name!r}{suggest(name, known)}")


def module(folder: str, name: str) -> ModuleType:
    """Import and return the module of a plugin."""
    check(folder, name)
    return importlib.import_module(f"stacl.{folder}.{name.replace('-', '_')}")


def find(folder: str, name: str, base: type[Kind]) -> type[Kind]:
    """Return the one public subclass of `base` that the plugin's file defines."""
    source = module(folder, name)
    classes = [
        value
        for value in vars(source).values()
        if isinstance(value, type)
        and issubclass(value, base)
        and value.__module__ == source.__name__
        and not value.__name__.startswith("_")
    ]
    if len(classes) != 1:
        raise TypeError(f"{source.__name__} must define exactly one public {base.__name__}, not {len(classes)}")
    return classes[0]
