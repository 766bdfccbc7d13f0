"""What `make demo` runs: the shipped models listen to real sentences, and several latencies speak side by side.

Time runs downwards. Each line is one source word that was heard, and beside it what each listener is told at that
moment: k = 1 follows one word behind, k = 3 three words, and so on. Nothing that was said is ever taken back. Below,
with the others, what a listener got who waits only where the model is not sure.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import textwrap
import time

import stacl
from stacl.commands._terminal import columns
from stacl.runs import pretrained

LATENCIES = (1, 3, 7)
ADAPTIVE = "confidence:2-6"
PACE = 0.3  # seconds a word: a brisk speaker
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


def interpret(translator: stacl.Translator, sentence: str, pace: float) -> None:
    """One sentence, heard by all listeners at once."""
    listeners = [translator.stream(f"wait-k:{k}") for k in LATENCIES]
    adaptive = translator.stream(ADAPTIVE)
    row(translator.source_language.name, *(f"k = {k}" for k in LATENCIES), style="\x1b[2m")
    for word in [*translator.source_language.split(sentence), None]:
        time.sleep(pace if word is not None else 0)
        *said, _ = [one.close() if word is None else one.read(word) for one in (*listeners, adaptive)]
        row(word or "", *(translator.target_language.join(one.text for one in some) for some in said))
    print()
    names = [*(f"k = {k}" for k in LATENCIES), "adaptive"]
    for name, listener in zip(names, (*listeners, adaptive), strict=True):
        behind = stacl.latency(listener.trace)["AL"]
        print(f"  {name:<9}{behind:4.1f} words behind   {translator.target_language.join(listener.trace.target)}")
    print(f"  {'all heard first':<29}{translator.translate(sentence, 'full')}\n")


def row(*cells: str, style: str = "") -> None:
    """One line of time; what does not fit into a column goes on below it."""
    narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < 2 + sum(WIDTHS)
    widths = NARROW if narrow else WIDTHS
    wrapped = [textwrap.wrap(cell, width - 2) or [""] for cell, width in zip(cells, widths, strict=True)]
    for number in range(max(map(len, wrapped))):
        parts = [lines[number] if number < len(lines) else "" for lines in wrapped]
        line = "".join(part + " " * (width - columns(part)) for part, width in zip(parts, widths, strict=True))
        coloured = style and sys.stdout.isatty()
        print(f"  {style}{line.rstrip()}\x1b[0m" if coloured else f"  {line}".rstrip(), flush=True)


def tell_more() -> None:
    print("What to try next:")
    print(
        "  .venv/bin/stacl translate                     type German, and English follows, slower where it is not sure"
    )
    print("  .venv/bin/stacl translate --policy wait-k:3   the same, always three words behind")
    print("  .venv/bin/stacl serve                         the same on a web page, with a latency slider")
    print("  .venv/bin/stacl models                        what is shipped, how good it is, what it is bad at")
    print("  .venv/bin/stacl --help                        train, evaluate, score, plot ...")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pace", type=float, default=PACE, metavar="SECONDS", help=f"between two words ({PACE})")
    pace = parser.parse_args().pace
    if not 0 <= pace <= 60:
        parser.error(f"--pace is a time from 0 to 60 seconds, not {pace:g}")
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    for name, sentences in SENTENCES.items():
        translator = stacl.load(name)
        print(f"{name}: {pretrained.summary(name)}\n")
        for sentence in sentences:
            interpret(translator, sentence, pace)
    tell_more()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:  # whoever looked has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left must not fail once more
