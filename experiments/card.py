"""Evaluate a shipped model and write the figures into its card, between the markers.

    python -m experiments.card de-en --root FOLDER

The figures are those of `stacl evaluate NAME --set SET --root FOLDER --policy ...` with the shipped weights, greedy.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from stacl.runs import pretrained

POLICIES = ("wait-k:1", "wait-k:3", "wait-k:5", "wait-k:9", "full")
DEEN = ["multi30k/test2016", *(f"eval-deen/{split}" for split in ("ted-dev2010", "mixed-test", "newstest2015", "pud"))]
ZHEN = ["three-am/devtest", *(f"eval-zhen/{split}" for split in ("flores-dev", "mixed-test", "newstest2017", "pud"))]
CAPTIONS = [f"multi30k/{split}" for split in ("val", "test2016", "test2017", "mscoco2017")]
CHINESE_CAPTIONS = ["three-am/val", "three-am/devtest"]
SETS = {
    **dict.fromkeys(("de-en", "en-de"), DEEN),
    **dict.fromkeys(("zh-en", "en-zh"), ZHEN),
    **dict.fromkeys(("photos-de-en", "photos-en-de"), CAPTIONS),
    **dict.fromkeys(("photos-zh-en", "photos-en-zh"), CHINESE_CAPTIONS),
}
BEGIN, END = "<!-- figures: python -m experiments.card -->", "<!-- end of figures -->"


def measured(name: str, root: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "stacl", "evaluate", name, "--root", root, "--json"]
    command += ["--set", *SETS[name], "--policy", *POLICIES]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def table(results: list[dict[str, Any]]) -> str:
    """One line per set: BLEU for every policy, AL at k = 3 and the share of degenerate outputs."""
    lines = [
        "| set | " + " | ".join(POLICIES) + " | AL at k = 3 | degenerate |",
        "|---|" + "--:|" * (len(POLICIES) + 2),
    ]
    for name in dict.fromkeys(result["set"] for result in results):
        rows = {result["policy"]: result for result in results if result["set"] == name}
        scores = [rows[policy]["scores"] for policy in POLICIES]
        size = int(re.search(r"\|n:(\d+)\|", rows["full"]["signatures"]["AL"])[1])
        worst = max(sum(row["degenerate"].values()) for row in rows.values())
        cells = [f"{score['BLEU']:.1f}" for score in scores] + [f"{scores[1]['AL']:.1f}", f"{worst / size:.1%}"]
        lines.append(f"| {name} ({size:,}) | " + " | ".join(cells) + " |")
    signature = results[0]["signatures"]
    lines += ["", f"BLEU `{signature['BLEU']}`, AL `{re.sub('n:[0-9]+.', '', signature['AL'])}`, greedy."]
    others = {r["set"]: r["signatures"]["BLEU"] for r in results if r["signatures"]["BLEU"] != signature["BLEU"]}
    lines += [f"Of {name}: BLEU `{other}`." for name, other in others.items()]
    lines.append("Degenerate: lines that are empty or loop, at the worst of these latencies.")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=SETS)
    parser.add_argument("--root", required=True, metavar="FOLDER", help="the folder that contains the data folders")
    args = parser.parse_args()
    found = table(measured(args.name, args.root))
    card = pretrained.folder(args.name) / pretrained.CARD
    text = card.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN) + len(BEGIN)], text[text.index(END) :]
    Path(card).write_text(f"{before}\n{found}\n{after}", encoding="utf-8")
    print(found)


if __name__ == "__main__":
    main()
