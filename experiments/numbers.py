"""How many numbers are translated, with and without `stacl/decoding/constraints/numbers.py`.

    python -m experiments.numbers de-en --root FOLDER

For the numbers that the source and the reference of a line share, it prints the share that was written. It also prints
how many were written that are in neither. Numbers are compared by their digits, so 1.000 equals 1,000. Measured on the
first 250 lines of the dev sets that share a number, greedy.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from itertools import islice

from experiments.dev import SETS
from stacl import api
from stacl.corpora.base import corpus
from stacl.decoding.options import Decoding
from stacl.live.translator import Translator

LINES = 250
FREE, BOUND = Decoding(constraints=("repetition",)), Decoding()  # without and with the constraint on numbers
Pairs = list[tuple[str, str]]


def numbers(text: str) -> Counter[str]:
    """How often each number occurs in a text.

    >>> numbers("1.000 Euro für 3, nicht 3,5") == Counter({"1000": 1, "3": 1, "35": 1})
    True
    """
    return Counter(re.sub(r"\D", "", found) for found in re.findall(r"\d[\d.,:]*\d|\d", text))


def lines_with_numbers(where: str, source: str, target: str, root: str) -> Pairs:
    spec, _, split = where.rpartition("/")
    rows = corpus(spec, source, target, root).open_references(split)
    pairs = ((line, references[0]) for line, references in rows)
    return list(islice((pair for pair in pairs if numbers(pair[0]) & numbers(pair[1])), LINES))


def written(translator: Translator, pairs: Pairs, policy: str, decoding: Decoding) -> tuple[float, int]:
    """The share of the shared numbers that was written, and how many were invented."""
    wanted = found = invented = 0
    traces = translator.translate_lines([source for source, _ in pairs], policy, decoding=decoding)
    for (source, reference), trace in zip(pairs, traces, strict=True):
        here, expected = numbers(translator.target_language.join(trace.target)), numbers(reference)
        both = Counter({number: times for number, times in expected.items() if number in numbers(source)})
        wanted += both.total()
        found += (both & here).total()
        invented += sum(times for number, times in (here - both).items() if number not in numbers(source) | expected)
    return found / wanted, invented


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", choices=("de-en", "en-de", "zh-en", "en-zh"))
    parser.add_argument("--root", required=True, metavar="FOLDER", help="the folder that contains the data folders")
    args = parser.parse_args()
    print(
        "| | lines | policy | free: written | invented | constrained: written | invented |\n"
        "|---|--:|---|--:|--:|--:|--:|"
    )
    for name in args.models:
        source, target = name.split("-")
        translator = api.load(name)
        for where in SETS[source if target == "en" else target][1:]:
            pairs = lines_with_numbers(where, source, target, args.root)
            for policy in ("wait-k:3", "full"):
                cells = [
                    f"{share:.1%} | {wrong}"
                    for share, wrong in (written(translator, pairs, policy, one) for one in (FREE, BOUND))
                ]
                print(f"| {name}, {where} | {len(pairs)} | {policy} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
