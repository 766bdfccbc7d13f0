"""The shipped models: one folder each, with exported weights, vocabulary, manifest and model card.

Nothing here needs torch. Checksums are verified when a model is loaded (runs/exported.py).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from stacl.support.errors import UserError, suggest

CARD = "card.md"
DEFAULT = "de-en"  # the model that commands use if none is named
_HOME = Path(__file__).parent


def names() -> list[str]:
    """Return the names of the shipped models: the default first, then by length (general models have short names)."""
    found = (path.parent.name for path in _HOME.glob(f"*/{CARD}"))
    return sorted(found, key=lambda name: (name != DEFAULT, len(name), name))


def folder(name: str) -> Path:
    """Return the folder of a shipped model."""
    if name not in names():
        raise UserError(f"{name!r} is not a shipped model{suggest(name, names())}")
    return _HOME / name


def find(name: str | Path) -> Path:
    """Return the folder of a model, given the name of a shipped model or any folder (./de-en is a folder)."""
    name = _renamed(name)
    if name in names() or (str(name) in names() and not Path(name).is_dir()):
        return _HOME / name
    if not str(name):
        raise UserError(f"the name of the model is empty; shipped models: {', '.join(names())}")
    if not _is_folder(name):
        if str(name) == "-" or Path(name).is_file():
            raise UserError(
                f"{name} is not a model. Usage: stacl translate MODEL FILE, as in: stacl translate {DEFAULT} {name}"
            )
        raise UserError(
            f"no model {name}: expected a folder that `stacl train` or `stacl export` made, or the name of a"
            f" shipped model{suggest(str(name), names())}"
        )
    if not any((Path(name) / file).exists() for file in ("manifest.json", "config.toml")):
        raise UserError(f"{name} is not a model: it has no manifest.json and no config.toml")
    return Path(name)


def _renamed(name: str | Path) -> str | Path:
    """Return the current name of a shipped model that was renamed."""
    old, new = str(name), re.sub(r"^captions-", "photos-", str(name))
    if old == new or new not in names() or Path(name).is_dir():
        return name
    print(f"note: the model {old} is now called {new}", file=sys.stderr)
    return new


def _is_folder(name: str | Path) -> bool:
    try:
        return Path(name).is_dir()
    except OSError:  # the name is too long for a file
        how = f"echo TEXT | stacl translate {DEFAULT}"
        raise UserError(f"the name of the model is too long; pass text through a file or a pipe: {how}") from None


def summary(name: str) -> str:
    """Return the line below the title of the model card."""
    return next(line for line in card(name).splitlines()[1:] if line.strip())


def card(name: str) -> str:
    """Return the model card: data, quality and known weaknesses."""
    return (folder(name) / CARD).read_text(encoding="utf-8")
