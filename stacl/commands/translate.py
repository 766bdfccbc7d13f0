"""Translate live: words in as they arrive, words out as soon as the policy allows, never revised.

A word is read at its white space, not at the end of the line, and each translated word is written at once. Piped, the
output is plain text, one line for each line of the input. On a terminal two lines show the source and, below it, the
translation with its lag.

  echo "Ein Mann schläft auf dem Sofa." | stacl translate de-en --policy wait-k:3
  stacl translate de-en speech.de --pace 0.4
  stacl translate runs/multi30k-de-en --whole-lines --trace trace.jsonl < test.de > test.en   # then: stacl score
"""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING

from stacl.runs.pretrained import DEFAULT
from stacl.support.errors import UserError
from stacl.traces.simulated_speaker import since_first_sound
from stacl.traces.trace import Trace

if TYPE_CHECKING:
    from stacl.commands._terminal import PlainView, TerminalView
    from stacl.live.sentence import Written
    from stacl.live.session import Session
    from stacl.text.source import SourceText

_SLOWEST = 3600.0
_BEAM = 5
_ENDS = [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        nargs="?",
        default=DEFAULT,
        metavar="MODEL",
        help=f"a shipped model, as `stacl models` lists them, or a run folder (default: {DEFAULT})",
    )
    parser.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="text to translate (default -: standard input)"
    )
    parser.add_argument(
        "--policy",
        metavar="P",
        help="reading policy, e.g. wait-k:3 (default: confidence:2-6 for a model that serves every k, else its own)",
    )
    parser.add_argument(
        "--beam",
        type=int,
        default=_BEAM,
        metavar="N",
        help=f"beam once the source has ended, which adds no delay (default {_BEAM}; 1 is greedy)",
    )
    parser.add_argument(
        "--ahead",
        type=int,
        default=0,
        metavar="N",
        help="beam look-ahead while the source is still open, in pieces (default 0)",
    )
    parser.add_argument(
        "--pace", type=float, metavar="SECONDS", help="read one word every SECONDS seconds, as from a speaker"
    )
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write words, delays and times as JSON lines")
    parser.add_argument(
        "--whole-lines", action="store_true", help="treat every line as one sentence, whatever its punctuation"
    )


def run(args: argparse.Namespace) -> int:
    if args.pace is not None and not 0 <= args.pace <= _SLOWEST:
        raise UserError(f"--pace is a time from 0 to {_SLOWEST:g} seconds, not {args.pace:g}")
    if str(args.trace) == "-":
        raise UserError("--trace needs a file: standard output is for the translation")
    from stacl import api
    from stacl.commands._keyboard import typed
    from stacl.commands._terminal import PlainView, TerminalView
    from stacl.decoding.options import Decoding
    from stacl.policies.base import policy
    from stacl.text.source import SourceText

    decoding = Decoding(beam=args.beam, ahead=args.ahead)
    chosen = None if args.policy is None else policy(args.policy)  # a typo is reported before anything is loaded
    with contextlib.ExitStack() as stack:
        source = _open(args.file, stack)
        translator = api.load(args.model)
        # It empties the file: not before it is known that there will be something to keep.
        log = None if args.trace is None else _Log(args.trace, stack, args.pace, source)
        session = translator.stream(chosen, decoding=decoding, on_trace=log.keep if log else None)
        with contextlib.suppress(OSError):  # no file at all, as in tests
            os.set_blocking(sys.stdout.fileno(), True)  # whoever shares a pipe may have made it drop what has no room
        on_terminal = sys.stdout.isatty()
        view: PlainView | TerminalView
        if on_terminal:
            view = TerminalView(translator.source_language, translator.target_language)
        else:
            view = PlainView(translator.target_language)
        stop = stack.enter_context(_Stop())
        if on_terminal and source.isatty():
            by_word = translator.source_language.splits_at_spaces
            chunks = typed(view, by_word, lambda handle: _wait_for(handle, 1024, stop))
        else:
            chunks = _chunks(source, stop)
        # A line a sentence: one without words is an empty sentence in the log too.
        empty = log.keep if log and args.whole_lines else None
        text = SourceText(translator.source_language, segment=not args.whole_lines)
        return _interpret(session, text, chunks, view, args.pace, stop, empty)


class _Stop:
    """Ctrl-C, or being told to end: at once while waiting, else between two words, so that no step is left half-done.

    A second one ends the program wherever it is.
    """

    def __init__(self) -> None:
        self.wanted = 0  # the number of the signal that came
        self.insists = False  # it came again
        self._waiting = False

    def __enter__(self) -> _Stop:
        # Who has it ignored, as nohup does, wants it ignored.
        heard = [number for number in _ENDS if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._came) for number in {signal.SIGINT, *heard}}
        return self

    def __exit__(self, *error: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside, Ctrl-C raises KeyboardInterrupt, also one that came just before."""
        self._waiting = True
        try:
            self.check()
            yield
        finally:
            self._waiting = False

    def check(self) -> None:
        if self.wanted:
            raise KeyboardInterrupt

    def _came(self, number: int, frame: FrameType | None) -> None:
        self.insists, self.wanted = self.wanted > 0, number
        if self._waiting or self.insists:
            raise KeyboardInterrupt


def _interpret(
    session: Session,
    text: SourceText,
    chunks: Iterator[bytes],
    view: PlainView | TerminalView,
    pace: float | None,
    stop: _Stop,
    on_empty: Callable[[Trace], None] | None,
) -> int:
    """The loop: read, write. Ctrl-C and the end of the input still write what is due."""
    from stacl.text.sentences import SENTENCE_END
    from stacl.text.words import LINE_END

    reader = text.reader
    code, in_line, line, warned = 0, False, 1, False
    try:
        for event in text.lines(chunks):
            stop.check()
            if event is SENTENCE_END:
                _write(session.take(event), view)
                continue
            if event is LINE_END:
                view.end()
                if on_empty and not in_line:
                    on_empty(Trace(0, (), policy=str(session.policy)))
                in_line, line = False, line + 1
                continue
            if reader.broken and "\ufffd" in event and not warned and not sys.stdout.isatty():
                usual = session.translator.source_language.fallback_encoding
                usual = "utf-16" if reader.begins_as_utf16 else usual
                warned = True  # once: a live stream may be broken for a moment only
                print(
                    f"stacl translate: line {line} is not UTF-8, and what cannot be read is lost;"
                    f" convert it first, for example with iconv -f {usual} -t utf-8",
                    file=sys.stderr,
                )
            if pace:
                with stop.waiting():
                    time.sleep(pace)
            in_line = True
            view.heard(event)
            _write(session.take(event), view)
            view.behind(session.behind)
    except KeyboardInterrupt:
        code = 128 + (stop.wanted or signal.SIGINT)
    if not stop.insists:  # else a step may be half-done, from which nothing can go on
        for item in text.stop():
            _write(session.take(item), view)
    if in_line:
        view.end()
    return code


def _write(words: Iterator[Written | None], view: PlainView | TerminalView) -> None:
    for word in words:
        if word:
            view.said(word.text)


def _open(name: str, stack: contextlib.ExitStack) -> IO[bytes]:
    if name == "-":
        if sys.stdin is None:
            raise UserError("standard input is closed; give a file to translate")
        return sys.stdin.buffer
    try:
        return stack.enter_context(Path(name).open("rb"))
    except OSError as error:
        raise UserError(f"{name} cannot be read: {error.strerror}") from None


class _Log:
    """Where traces go, a line each, at once.

    A file has no speaker: the times at which its words came are the machine's own, and latency on the clock would be
    measured against them. With a pace there is one, and his first word began before it came.
    """

    def __init__(self, path: Path, stack: contextlib.ExitStack, pace: float | None, source: IO[bytes]) -> None:
        heard = os.fstat(source.fileno())
        self._path, self._pace, self._from_file = path, pace, stat.S_ISREG(heard.st_mode)
        with self._said_in_one_line():
            if self._from_file and path.exists() and os.path.samestat(heard, path.stat()):
                raise UserError(f"--trace {path} is the text to translate, which it would overwrite; name another file")
            # Unbuffered: a kill loses no sentence, and a full disk is noticed where it can be said.
            self._file = stack.enter_context(path.open("wb", buffering=0))

    def keep(self, trace: Trace) -> None:
        if self._pace:
            trace = since_first_sound(trace, self._pace)
        elif self._from_file:
            trace = replace(trace, read_times=(), write_times=())
        with self._said_in_one_line():
            self._file.write(f"{trace.to_json()}\n".encode())

    @contextlib.contextmanager
    def _said_in_one_line(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(f"--trace {self._path} cannot be written: {error.strerror}") from None


def _chunks(source: IO[bytes], stop: _Stop) -> Iterator[bytes]:
    """What is there, as soon as it is there: a read does not wait until a buffer is full."""
    while chunk := _wait_for(source.fileno(), 65536, stop):
        yield chunk


def _wait_for(handle: int, most: int, stop: _Stop) -> bytes:
    with stop.waiting():
        while True:
            try:
                return os.read(handle, most)
            except BlockingIOError:  # whoever shares the pipe or the terminal has made it so
                select.select([handle], [], [])
            except OSError as error:
                raise UserError(f"the text cannot be read: {error.strerror}") from None
