"""The keyboard of a terminal as a source of text: what is typed counts when its word is finished."""

from __future__ import annotations

import codecs
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stacl.commands._terminal import PlainView, TerminalView

_ERASE = ("\x7f", "\x08")
_ERASE_WORD = ("\x17", "\x15")  # Ctrl-W, and Ctrl-U: more than the word cannot be taken back
_FUNCTION_KEYS = re.compile(r"\x1b(?:\[[0-9;]*[@-~]|O.|)")  # arrows and the like: escape sequences
_BROKEN_OFF = re.compile(r"\x1b(?:\[[0-9;]*|O)?$")  # the rest of such a key may come with what is read next


def typed(view: PlainView | TerminalView, spaced: bool, wait: Callable[[int], bytes]) -> Iterator[bytes]:
    """Keys as they are typed, without waiting for Enter; Ctrl-D ends. The word being typed may still be corrected.

    Where words have no spaces between them, every character counts at once and cannot be taken back. `wait` gives what
    has come on a file handle, once something has.
    """
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    word = held = ""
    try:
        tty.setcbreak(handle, termios.TCSADRAIN)  # what was typed while the model was loaded stays
        erase = "" if spaced else " What is typed cannot be taken back."
        print(f"Type; the translation follows. Enter ends a sentence, Ctrl-D ends.{erase}", file=sys.stderr)
        while chunk := wait(handle):
            text = held + decoder.decode(chunk)
            whole = _BROKEN_OFF.sub("", text)
            held = text[len(whole) :]
            for key in _FUNCTION_KEYS.sub("", whole):
                if key == "\x04":
                    yield word.encode()
                    return
                if key in _ERASE_WORD and spaced:
                    word = ""
                    view.typing(word)
                if unicodedata.category(key) == "Cc" and key not in _ERASE and not key.isspace():
                    continue
                if not spaced:
                    if key not in _ERASE:
                        view.typed("" if key == "\n" else key)
                        yield key.encode()
                    continue
                word = word[:-1] if key in _ERASE else word + key
                if key.isspace():
                    yield word.encode()
                    word = ""
                else:
                    view.typing(word)
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)
