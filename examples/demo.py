"""The demo of `make demo`: shipped models translate sentences live, at several latencies side by side.

Each line of the table is one source word and the words that each latency writes at that moment. k = 1 is one word
behind, k = 3 three words, and so on. Written words are never revised. Below the table are all
translations. The adaptive policy waits only where the model is not confident.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import textwrap
import time

from wcwidth import wcswidth

import stacl
from stacl.runs import pretrained

LATENCIES = (1, 3, 7)
ADAPTIVE = "confidence:2-6"
PACE = 0.3  # seconds per word: a fast speaker
WIDTHS = (16, 24, 24, 32)
NARROW = (14, 16, 20, 26)  # for a window of 80 columns
SENTENCES = {
    "photos-de-en": [
        "Eine Frau in einem gelben Kleid tanzt mit ihren Freunden auf der Straße.",
        "Ein Mann und zwei Kinder, die am Strand mit einem Hund spielen.",
    ],
    "de-en": ["Ich weiß nicht, ob er morgen kommen wird.", "Kannst du mir morgen bei den Hausaufgaben helfen?"],
    "zh-en": ["两个孩子在花园里踢足球。"],
}


def translate_live(translator: stacl.Translator, sentence: str, pace: float) -> None:
    """Translate one sentence at all latencies."""
    sessions = [translator.stream(f"wait-k:{k}") for k in LATENCIES]
    adaptive = translator.stream(ADAPTIVE)
    row(translator.source_language.name, *(f"k = {k}" for k in LATENCIES), style="\x1b[2m")
    for word in [*translator.source_language.split(sentence), None]:
        time.sleep(pace if word is not None else 0)
        *written, _ = [one.close() if word is None else one.read(word) for one in (*sessions, adaptive)]
        row(word or "", *(translator.target_language.join(one.text for one in some) for some in written))
    print()
    names = [*(f"k = {k}" for k in LATENCIES), "adaptive"]
    for name, session in zip(names, (*sessions, adaptive), strict=True):
        behind = stacl.latency(session.trace)["AL"]
        print(f"  {name:<9}{behind:4.1f} words behind   {translator.target_language.join(session.trace.target)}")
    print(f"  {'whole sentence first':<29}{translator.translate(sentence)}\n")


def row(*cells: str, style: str = "") -> None:
    """Print one row. Text that does not fit into a column is wrapped."""
    narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < 2 + sum(WIDTHS)
    widths = NARROW if narrow else WIDTHS
    wrapped = [textwrap.wrap(cell, width - 2) or [""] for cell, width in zip(cells, widths, strict=True)]
    for number in range(max(map(len, wrapped))):
        parts = [lines[number] if number < len(lines) else "" for lines in wrapped]
        line = "".join(part + " " * (width - wcswidth(part)) for part, width in zip(parts, widths, strict=True))
        coloured = style and sys.stdout.isatty()
        print(f"  {style}{line.rstrip()}\x1b[0m" if coloured else f"  {line}".rstrip(), flush=True)


def print_next_steps() -> None:
    print("What to try next:")
    print("  .venv/bin/stacl translate                     type German, read English (adaptive latency)")
    print("  .venv/bin/stacl translate --policy wait-k:3   the same, always three words behind")
    print("  .venv/bin/stacl serve                         the same on a web page, with a latency slider")
    print("  .venv/bin/stacl models                        the shipped models, their quality and their limits")
    print("  .venv/bin/stacl --help                        train, evaluate, score, plot ...")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--pace", type=float, default=PACE, metavar="SECONDS", help=f"time between two words (default {PACE})"
    )
    pace = parser.parse_args().pace
    if not 0 <= pace <= 60:
        parser.error(f"--pace must be from 0 to 60 seconds, not {pace:g}")
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    for name, sentences in SENTENCES.items():
        translator = stacl.load(name)
        print(f"{name}: {pretrained.summary(name)}\n")
        for sentence in sentences:
            translate_live(translator, sentence, pace)
    print_next_steps()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:  # the reader of the output has exited
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # flushing at exit must not fail again
