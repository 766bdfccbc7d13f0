"""Translate live: each word is translated as soon as the policy allows, and the output is never revised.

A source word is read as soon as white space follows it, not at the end of the line. Each translated word is written at
once. In a pipe, the output is plain text with one line per input line. On a terminal, two lines show the source and the
translation with its lag.

  echo "Ein Mann schläft auf dem Sofa." | stacl translate de-en --policy wait-k:3
  stacl translate de-en speech.de --pace 0.4
  stacl translate runs/multi30k-de-en --whole-lines --trace trace.jsonl < test.de > test.en   # then: stacl score
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from stacl.commands._input import StopSignal, chunks, open_input, wait_for
from stacl.commands._trace_file import TraceFile
from stacl.runs.pretrained import DEFAULT
from stacl.support.errors import UserError
from stacl.traces.trace import Trace

if TYPE_CHECKING:
    from stacl.commands._terminal import LiveView
    from stacl.live.sentence import Written
    from stacl.live.session import Session
    from stacl.text.source import SourceText

_SLOWEST = 3600.0
_BEAM = 5


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
        raise UserError(f"--pace must be from 0 to {_SLOWEST:g} seconds, not {args.pace:g}")
    if str(args.trace) == "-":
        raise UserError("--trace needs a file: standard output is for the translation")
    from stacl import api
    from stacl.commands._keyboard import typed
    from stacl.commands._terminal import PlainView, TerminalView
    from stacl.decoding.options import Decoding
    from stacl.policies.base import policy
    from stacl.text.source import SourceText

    decoding = Decoding(beam=args.beam, ahead=args.ahead)
    chosen = None if args.policy is None else policy(args.policy)  # report a typo before anything is loaded
    with contextlib.ExitStack() as stack:
        source = open_input(args.file, stack)
        translator = api.load(args.model)
        # Opened last: it empties the file.
        log = None if args.trace is None else TraceFile(args.trace, stack, args.pace, source)
        session = translator.stream(chosen, decoding=decoding, on_trace=log.keep if log else None)
        with contextlib.suppress(OSError):  # standard output has no file descriptor, as in tests
            os.set_blocking(sys.stdout.fileno(), True)  # a shared pipe may be non-blocking, and would drop output
        on_terminal = sys.stdout.isatty()
        view: LiveView
        if on_terminal:
            view = TerminalView(translator.source_language, translator.target_language)
        else:
            view = PlainView(translator.target_language)
        stop = stack.enter_context(StopSignal())
        if on_terminal and source.isatty():
            by_word = translator.source_language.splits_at_spaces
            arriving = typed(view, by_word, lambda handle: wait_for(handle, 1024, stop))
        else:
            arriving = chunks(source, stop)
        # With --whole-lines a line is a sentence, so a line without words gives an empty trace.
        empty = log.keep if log and args.whole_lines else None
        text = SourceText(translator.source_language, segment=not args.whole_lines)
        return _interpret(session, text, arriving, view, args.pace, stop, empty)


def _interpret(
    session: Session,
    text: SourceText,
    arriving: Iterator[bytes],
    view: LiveView,
    pace: float | None,
    stop: StopSignal,
    on_empty: Callable[[Trace], None] | None,
) -> int:
    """Read and write until the input ends. After Ctrl-C the rest of the current sentence is still written."""
    from stacl.text.sentences import SENTENCE_END
    from stacl.text.words import LINE_END

    reader = text.reader
    code, in_line, line, warned = 0, False, 1, False
    try:
        for event in text.lines(arriving):
            stop.check()
            if event is SENTENCE_END:
                _write(session.take(event), view)
                continue
            if event is LINE_END:
                view.end_line()
                if on_empty and not in_line:
                    on_empty(Trace(0, (), policy=str(session.policy)))
                in_line, line = False, line + 1
                continue
            if reader.broken and "\ufffd" in event and not warned and not sys.stdout.isatty():
                usual = session.translator.source_language.fallback_encoding
                usual = "utf-16" if reader.begins_as_utf16 else usual
                warned = True  # once: a live stream may be broken only for a moment
                print(
                    f"stacl translate: line {line} is not UTF-8; unreadable bytes are lost."
                    f" Convert the text first, for example with iconv -f {usual} -t utf-8",
                    file=sys.stderr,
                )
            if pace:
                with stop.waiting():
                    time.sleep(pace)
            in_line = True
            view.add_source(event)
            _write(session.take(event), view)
            view.set_lag(session.behind)
    except KeyboardInterrupt:
        code = 128 + (stop.number or signal.SIGINT)
    if not stop.repeated:  # after a second signal a step may be incomplete
        for item in text.stop():
            _write(session.take(item), view)
    if in_line:
        view.end_line()
    return code


def _write(words: Iterator[Written | None], view: LiveView) -> None:
    for word in words:
        if word:
            view.add_target(word.text)
