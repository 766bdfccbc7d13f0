"""Translate live: words in as they arrive, words out as soon as the policy allows, never taken back.

A word is taken at its white space, not at the end of the line, and each translated word is written at once. Piped, the
output is plain text, one line for each line of the input. On a terminal two lines show the source and, below it, the
translation with its lag.

  echo "Ein Mann schläft auf dem Sofa." | stacl translate runs/multi30k-de-en --policy wait-k:3
  stacl translate runs/multi30k-de-en speech.de --pace 0.4
  stacl translate runs/multi30k-de-en --trace trace.jsonl < test.de > test.en
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from stacl.errors import UserError

if TYPE_CHECKING:
    from stacl.sentence import Written
    from stacl.stream import Session
    from stacl.view import PlainView, TerminalView

_ERASE = ("\x7f", "\x08")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a run folder")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="text to translate (default -: standard input)")
    parser.add_argument("--policy", metavar="P", help="reading policy, e.g. wait-k:3 (default: the model's own)")
    parser.add_argument("--beam", type=int, default=1, metavar="N", help="beam for what follows the end of the source")
    parser.add_argument("--pace", type=float, metavar="SECONDS", help="hear one word in so many seconds, as from a speaker")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write words, delays and times as JSON lines")
    parser.add_argument("--whole-lines", action="store_true", help="a line is one sentence, whatever its punctuation")


def run(args: argparse.Namespace) -> int:
    if args.pace is not None and args.pace < 0:
        raise UserError(f"--pace is a time in seconds, not {args.pace}")
    from stacl import api
    from stacl.view import PlainView, TerminalView

    with contextlib.ExitStack() as stack:
        source = _open(args.file, stack)
        log = _log(args.trace, stack)
        translator = api.load(args.model)
        session = translator.stream(
            args.policy,
            beam=args.beam,
            segment=not args.whole_lines,
            on_trace=(lambda trace: print(trace.to_json(), file=log, flush=True)) if log else None,
        )
        on_terminal = sys.stdout.isatty()
        view: PlainView | TerminalView
        if on_terminal:
            view = TerminalView(translator.source_language, translator.target_language)
        else:
            view = PlainView(translator.target_language)
        chunks = _typed(view) if on_terminal and source.isatty() else _chunks(source)
        return _interpret(session, chunks, view, args.pace)


def _interpret(session: Session, chunks: Iterator[bytes], view: PlainView | TerminalView, pace: float | None) -> int:
    """The loop: hear, say. Ctrl-C and the end of the input still say what is due."""
    from stacl.words import LINE_END, read_words

    code, in_line = 0, False
    try:
        for event in read_words(chunks, session.translator.source_language):
            if event is LINE_END:
                _say(session.end(), view)
                view.end()
                in_line = False
                continue
            if pace:
                time.sleep(pace)
            in_line = True
            view.heard(event)
            _say(session.read(event), view)
    except KeyboardInterrupt:
        code = 130
    _say(session.close(), view)
    if in_line:
        view.end()
    return code


def _say(words: list[Written], view: PlainView | TerminalView) -> None:
    for word in words:
        view.said(word.text)


def _open(name: str, stack: contextlib.ExitStack) -> IO[bytes]:
    if name == "-":
        return sys.stdin.buffer
    try:
        return stack.enter_context(Path(name).open("rb"))
    except OSError as error:
        raise UserError(f"{name} cannot be read: {error.strerror}") from None


def _log(path: Path | None, stack: contextlib.ExitStack) -> IO[str] | None:
    if path is None:
        return None
    try:
        return stack.enter_context(path.open("w", encoding="utf-8"))
    except OSError as error:
        raise UserError(f"--trace {path} cannot be written: {error.strerror}") from None


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    """What is there, as soon as it is there: a read does not wait until a buffer is full."""
    handle = source.fileno()
    while chunk := os.read(handle, 65536):
        yield chunk


def _typed(view: Any) -> Iterator[bytes]:
    """Keys as they are typed, without waiting for Enter; Ctrl-D ends. The word being typed may still be corrected."""
    import termios
    import tty

    handle = sys.stdin.fileno()
    before = termios.tcgetattr(handle)
    print("Type; the translation follows. Enter ends a sentence, Ctrl-D ends.", file=sys.stderr)
    word = ""
    try:
        tty.setcbreak(handle)
        pending = b""
        while chunk := os.read(handle, 1024):
            pending += chunk
            with contextlib.suppress(UnicodeDecodeError):
                text, pending = pending.decode("utf-8"), b""
                for key in text:
                    if key == "\x04":
                        yield word.encode()
                        return
                    if key in _ERASE:
                        word = word[:-1]
                    else:
                        word += key
                    if key.isspace():
                        yield word.encode()
                        word = ""
                    else:
                        view.typing(word)
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)
