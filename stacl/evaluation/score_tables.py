"""The tables that `stacl score` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def sentence_table(rows: Sequence[Mapping[str, float | None]]) -> str:
    """Return the scores of each sentence, separated by tabs. A sentence without output has fewer scores."""
    columns = dict.fromkeys(name for row in rows for name in row)
    lines = ["\t".join(["sentence", *columns])]
    for number, row in enumerate(rows, 1):
        lines.append("\t".join([str(number), *(_cell(row.get(name)) for name in columns)]))
    return "\n".join(lines)


def corpus_table(found: Mapping[str, Any]) -> str:
    """Return a row per score: name, value, signature, and if given the interval, the baseline and the p-value.

    `found` is the object that `stacl score --json` prints.
    """
    rows = [["", "score"]]
    intervals, baseline = found.get("intervals"), found.get("baseline")
    rows[0] += ["95% interval"] if intervals else []
    rows[0] += ["baseline", "p"] if baseline else []
    rows[0].append(f"{found['sentences']} sentences of {found['file']}")
    for name, value in found["scores"].items():
        row = [name, _cell(value)]
        if intervals:
            row.append("{:.3f} to {:.3f}".format(*intervals[name]) if name in intervals else "")
        if baseline:
            p_value = found["p_values"].get(name)
            row += [_cell(baseline["scores"].get(name)), "" if p_value is None else f"{p_value:.4f}"]
        rows.append([*row, found["signatures"][name]])
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    return "\n".join(_line(row, widths) for row in rows)


def _line(row: list[str], widths: list[int]) -> str:
    numbers = (cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=True))
    return "  ".join([row[0].ljust(widths[0]), *numbers, row[-1]])


def _cell(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
