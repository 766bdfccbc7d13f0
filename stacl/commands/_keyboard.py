"""Text typed on a terminal, as an input of `stacl translate`."""

from __future__ import annotations

import codecs
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stacl.commands._terminal import LiveView

_END = "\x04"  # Ctrl-D
_ERASE = ("\x7f", "\x08")
_ERASE_WORD = ("\x17", "\x15")  # Ctrl-W, and Ctrl-U, which cannot erase more than the open word
_FUNCTION_KEYS = re.compile(r"\x1b(?:\[[0-9;]*[@-~]|O.|)")  # escape sequences of arrow keys and the like
_INCOMPLETE_KEY = re.compile(r"\x1b(?:\[[0-9;]*|O)?$")  # the rest may arrive with the next read


def typed(view: LiveView, by_word: bool, wait: Callable[[int], bytes]) -> Iterator[bytes]:
    """Yield text while it is typed, without waiting for Enter. Ctrl-D ends it.

    With `by_word`, a word is sent when it is finished and can be edited until then. Otherwise every character is sent
    at once and cannot be erased. `wait(handle)` blocks until the file handle has input, and returns it.
    """
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    try:
        tty.setcbreak(handle, termios.TCSADRAIN)  # keeps text that was typed while the model was loaded
        erase = "" if by_word else " Typed characters cannot be erased."
        print(f"Type text to translate. Enter ends a sentence, Ctrl-D ends the program.{erase}", file=sys.stderr)
        keys = _keys(iter(lambda: wait(handle), b""))
        yield from _words(view, keys) if by_word else _characters(view, keys)
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


def _keys(chunks: Iterator[bytes]) -> Iterator[str]:
    """Yield typed characters and the keys that edit them, up to Ctrl-D. Other control keys are dropped."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    incomplete = ""
    for chunk in chunks:
        text = incomplete + decoder.decode(chunk)
        complete = _INCOMPLETE_KEY.sub("", text)
        incomplete = text[len(complete) :]
        for key in _FUNCTION_KEYS.sub("", complete):
            if unicodedata.category(key) != "Cc" or key.isspace() or key in (*_ERASE, *_ERASE_WORD, _END):
                yield key
            if key == _END:
                return


def _words(view: LiveView, keys: Iterator[str]) -> Iterator[bytes]:
    word = ""
    for key in keys:
        if key == _END:
            yield word.encode()
        elif key.isspace():
            yield (word + key).encode()
            word = ""
        else:
            word = "" if key in _ERASE_WORD else word[:-1] if key in _ERASE else word + key
            view.set_open_word(word)


def _characters(view: LiveView, keys: Iterator[str]) -> Iterator[bytes]:
    for key in keys:
        if key not in (*_ERASE, *_ERASE_WORD, _END):
            view.add_key("" if key == "\n" else key)
            yield key.encode()
