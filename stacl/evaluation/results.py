"""The results of evaluations: saved to scores.json, and printed as a table."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

from stacl.support.files import sole_writer, write_text_atomically

COLUMNS = ("BLEU", "chrF", "AL", "LAAL", "AP", "CW", "DAL")
LIVE_COLUMNS = ("AL_CA", "RTF", "ms_per_word")  # these need computing times
DIGITS = {"RTF": 4}  # two digits are too few for values around 0.01

Result = dict[str, Any]  # what `evaluate` returns: a JSON object


def save(folder: Path, results: list[Result]) -> None:
    """Add the results to `scores.json`. A result of the same set and decoding is replaced.

    If the file holds results of other weights or of another text, it is renamed, because they belong to another curve.
    """
    path = folder / "scores.json"
    with sole_writer(path):  # several evaluations may share a folder
        before = _read(path)
        if not _same_origin(before, results):
            set_aside(path)
            before = []
        replaced = set(map(_key, results))
        kept = [one for one in before if _key(one) not in replaced]
        write_text_atomically(path, json.dumps(kept + results, indent=1) + "\n")


def _read(path: Path) -> list[Result]:
    """Return the results of a file, or none if it is missing or has another format."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        complete = all(_key(one) and {"weights", "text"} <= one.keys() for one in found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
    return list(found) if complete else []


def _key(result: Result) -> tuple[str | None, str]:
    return result.get("set"), result["signatures"]["decoding"]


def _same_origin(before: list[Result], results: list[Result]) -> bool:
    """Whether earlier results have the same weights, and sets of the same name have the same text."""
    texts = {result.get("set"): result["text"] for result in results}
    return bool(before) and all(
        one["weights"] == results[0]["weights"] and texts.get(one.get("set"), one["text"]) == one["text"]
        for one in before
    )


def set_aside(path: Path) -> None:
    """Rename a file to `NAME.1`, `NAME.2`, ... so that it is not overwritten."""
    if not path.is_file() or not path.stat().st_size:
        return
    number = next(number for number in itertools.count(1) if not path.with_name(f"{path.name}.{number}").exists())
    path.rename(path.with_name(f"{path.name}.{number}"))


def table(results: list[Result], name: str = "") -> str:
    """Return a table with a row per policy, then the signatures. Equal signatures are printed once."""
    columns = COLUMNS + (LIVE_COLUMNS if any(key in one["scores"] for one in results for key in LIVE_COLUMNS) else ())
    widths = {column: max(8, len(column) + 2) for column in columns}
    first = max(len("policy"), *(len(result["policy"]) for result in results))
    lines = [name] if name else []
    lines += ["policy".ljust(first) + "".join(column.rjust(widths[column]) for column in columns) + "   empty  loops"]
    for result in results:
        cells = "".join(_cell(result["scores"].get(column), column).rjust(widths[column]) for column in columns)
        degenerate = result["degenerate"]
        lines.append(f"{result['policy']:<{first}}{cells}{degenerate['empty']:>8}{degenerate['loops']:>7}")
    return "\n".join([*lines, "", *_signatures(results, columns)])


def _cell(score: float | None, column: str) -> str:
    return "-" if score is None else f"{score:.{DIGITS.get(column, 2)}f}"


def _signatures(results: list[Result], columns: tuple[str, ...]) -> list[str]:
    lines = []
    for column in ("decoding", *columns):
        policies: dict[str, list[str]] = {}  # by the signature that they share
        for result in results:
            if column in result["signatures"]:
                policies.setdefault(result["signatures"][column], []).append(result["policy"])
        for signature, sharing in policies.items():
            # The decoding signature already names its policy.
            of = f" ({', '.join(sharing)})" if len(policies) > 1 and column != "decoding" else ""
            lines.append(f"{column}{of}: {signature}")
    return lines
