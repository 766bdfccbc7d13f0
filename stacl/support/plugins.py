"""The file is the registration: a class in `policies/wait_k.py` is known as `wait-k`, and so for every folder.

A folder of siblings (policies, metrics, models, corpora, commands) is an extension point. Adding one file adds one
name; there is no table to keep in step. Modules that are no plugin begin with an underscore or are listed in the
package's `HELPERS`.
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
    """The names that the files of a folder stand for, sorted.

    >>> "full" in names("policies")
    True
    """
    package = importlib.import_module(f"stacl.{folder}")
    helpers = ("base", *getattr(package, "HELPERS", ()))
    found = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name.replace("_", "-") for name in found if name not in helpers and not name.startswith("_")))


def check(folder: str, name: str) -> None:
    """An unknown name is a user's mistake and gets a suggestion. Nothing is imported: a model would bring torch."""
    known = names(folder)
    if name not in known:
        kind = {"policies": "policy", "corpora": "corpus"}.get(folder, folder.rstrip("s"))
        raise UserError(f"no {kind} is called {name!r}{suggest(name, known)}")


def module(folder: str, name: str) -> ModuleType:
    """The module that a name stands for."""
    check(folder, name)
    return importlib.import_module(f"stacl.{folder}.{name.replace('-', '_')}")


def find(folder: str, name: str, base: type[Kind]) -> type[Kind]:
    """The one public class of `base` that the file of this name defines."""
    home = module(folder, name)
    classes = [
        value
        for value in vars(home).values()
        if isinstance(value, type)
        and issubclass(value, base)
        and value.__module__ == home.__name__
        and not value.__name__.startswith("_")
    ]
    if len(classes) != 1:
        raise TypeError(f"{home.__name__} must define exactly one public {base.__name__}, not {len(classes)}")
    return classes[0]
