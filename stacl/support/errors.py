"""What a user did wrong, said in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_NAME = 200  # characters


class UserError(Exception):
    """A mistake that the user can mend. The command line prints it as one line and exits with code 2.

    The message says what was expected, what came, and what to do.
    """


def suggest(wrong: str, known: Iterable[str]) -> str:
    """`; did you mean X?` for the closest of the known names, or the list of them, or nothing.

    >>> suggest("wait_k", ["wait-k", "full"])
    '; did you mean wait-k?'
    >>> suggest("zzz", ["wait-k", "full"])
    '; known: full, wait-k'
    """
    names = sorted(known)
    if len(wrong) > _LONGEST_NAME:  # nothing that we know is like it, and to find that out would take long
        return ""
    close = difflib.get_close_matches(wrong, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; known: {', '.join(names)}" if names else ""
