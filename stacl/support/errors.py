"""Errors that the user can fix, and suggestions for misspelled names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_NAME = 200  # characters


class UserError(Exception):
    """A mistake that the user can fix. The command line prints it as one line and exits with code 2.

    The message says what was expected, what was found, and what to do.
    """


def suggest(wrong: str, known: Iterable[str]) -> str:
    """Return `; did you mean X?` for the closest known name, else the list of known names, else nothing.

    >>> suggest("wait_k", ["wait-k", "full"])
    '; did you mean wait-k?'
    >>> suggest("zzz", ["wait-k", "full"])
    '; known: full, wait-k'
    """
    names = sorted(known)
    if len(wrong) > _LONGEST_NAME:  # no known name is that long, and the comparison would be slow
        return ""
    close = difflib.get_close_matches(wrong, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known: {', '.join(names)}" if names else ""
