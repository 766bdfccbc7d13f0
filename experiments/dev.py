"""Compare models on the dev sets that are used to choose general models: one table row per model.

    python -m experiments.dev de-en runs/one runs/other --root FOLDER

Greedy, on 500 lines of captions and of FLORES dev, 300 of news and the hundred everyday sentences of
`experiments/everyday`. "hurried" is the same text as typed in a hurry (`stacl.training.augment.careless`). Published
figures are measured on test sets by `experiments/card.py`.
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

from stacl import api
from stacl.corpora.base import corpus
from stacl.evaluation.evaluate import Condition, evaluate
from stacl.live.translator import Translator
from stacl.policies.base import policy
from stacl.training.augment import careless

EVERYDAY = Path(__file__).parent / "everyday"
LINES = {"captions": 500, "FLORES dev": 500, "news": 300}  # at most
SETS = {  # captions, FLORES dev, news
    "de": ("multi30k/val", "eval-deen/flores-dev", "eval-deen/newstest2013"),
    "zh": ("three-am/val", "eval-zhen/flores-dev", "eval-zhen/newstest2018-sub700"),
}
HURRIED_LINES = 300
Pairs = list[tuple[str, str]]


def dev_sets(source: str, target: str, root: str) -> dict[str, Pairs]:
    """The first lines of each set, source and reference."""
    found = {}
    for name, where in zip(LINES, SETS[source if target == "en" else target], strict=True):
        spec, _, split = where.rpartition("/")
        rows = islice(corpus(spec, source, target, root).open_references(split), LINES[name])
        found[name] = [(line, references[0]) for line, references in rows]
    sides = ((EVERYDAY / f"dev.{code}").read_text(encoding="utf-8").splitlines() for code in (source, target))
    return found | {"everyday": list(zip(*sides, strict=True))}


def bleu(translator: Translator, pairs: Pairs, spec: str) -> float:
    sources, references = map(list, zip(*pairs, strict=True))
    return evaluate(translator, sources, {"reference": references}, Condition(policy(spec)))["scores"]["BLEU"]


def row(translator: Translator, sets: dict[str, Pairs]) -> dict[str, str]:
    cells = {
        name: f"{bleu(translator, pairs, 'wait-k:3'):.1f} / {bleu(translator, pairs, 'full'):.1f}"
        for name, pairs in sets.items()
    }
    cells["everyday, confidence:2-6"] = f"{bleu(translator, sets['everyday'], 'confidence:2-6'):.1f}"
    for name in ("captions", "everyday"):
        hurried = [(careless(source), reference) for source, reference in sets[name][:HURRIED_LINES]]
        cells[f"hurried {name}"] = f"{bleu(translator, hurried, 'wait-k:3'):.1f}"
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("direction", choices=("de-en", "en-de", "zh-en", "en-zh"))
    parser.add_argument("models", nargs="+", metavar="MODEL", help="run folders or names of shipped models")
    parser.add_argument("--root", required=True, metavar="FOLDER", help="the folder that contains the data folders")
    args = parser.parse_args()
    sets = dev_sets(*args.direction.split("-"), args.root)
    for number, name in enumerate(args.models):
        cells = row(api.load(name), sets)
        if not number:
            print("| wait-3 / full | " + " | ".join(cells) + " |\n|---|" + "--:|" * len(cells))
        print(f"| {name} | " + " | ".join(cells.values()) + " |", flush=True)


if __name__ == "__main__":
    main()
