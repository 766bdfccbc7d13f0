"""Quality against latency for several systems, with their intervals.

Each argument is one system: files with the JSON output of `stacl evaluate --json` or `stacl score --json`, separated by
commas, with an optional name before `=`. Several scores after --x give several panels.

  stacl plot tradeoff ours=ours.json "test-time=t1.json,t3.json,t5.json" --x AL CW --y BLEU --out curve.svg
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stacl.plots import base
from stacl.support.errors import UserError, suggest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COUNTED = "source units"
UNITS = dict.fromkeys(("AP", "AP_ref", "AP_CA", "AP_ref_CA"), "share of the source") | {
    "RTF": "ratio",
    "NE": "share of the output",
    "ms_per_word": "ms",
}


@dataclass(frozen=True)
class Point:
    """One system at one setting."""

    scores: dict[str, float | None]
    intervals: dict[str, list[float]]
    note: str = ""  # label of the point: k, or the arguments of another policy
    unit: str = ""  # of its latency

    def value(self, score: str) -> float:
        """NaN if the system has no such score."""
        found = self.scores.get(score)
        return math.nan if found is None else found


Curves = dict[str, list[Point]]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("systems", nargs="+", metavar="[NAME=]FILE[,FILE...]", help="JSON scores of a system")
    parser.add_argument("--x", nargs="+", default=["AL"], metavar="SCORE", help="latency: AL, CW, AP ... (default AL)")
    parser.add_argument("--y", default="BLEU", metavar="SCORE", help="quality score (default BLEU)")


def picture(args: argparse.Namespace) -> Figure:
    curves: Curves = {}
    for argument in args.systems:
        for name, points in read_curves(argument).items():
            curves.setdefault(name, []).extend(points)
    _check_units(curves, args.x)
    for score in [*args.x, args.y]:
        known = {name for points in curves.values() for point in points for name in point.scores}
        if score not in known:
            raise UserError(f"no system has the score {score!r}{suggest(score, known)}")
    base.prepare([*curves, args.title or ""], args.font)
    return draw(curves, args.x, args.y, args.title)


def _check_units(curves: Curves, latencies: list[str]) -> None:
    """Reject incompatible units. Units char and word are compatible: both count latency in source words."""
    units = {point.unit for points in curves.values() for point in points if point.unit}
    counted = any(_unit(latency, curves) == COUNTED for latency in latencies)  # scores in ms are comparable
    if len(units) > 1 and ("ms" in units or ("piece" in units and counted)):
        first, second = (name if name == "ms" else f"{name}s" for name in sorted(units, key=_unit_order)[:2])
        raise UserError(f"some systems count latency in {first} and some in {second}; plot them separately")


def _unit_order(unit: str) -> int:
    return {"ms": 0, "piece": 1, "word": 2}.get(unit, 3)


def read_curves(argument: str) -> Curves:
    """The curves of one argument. A curve has one policy family (wait-k:1, wait-k:3 ...) with the same policy options,
    test set and decoding options."""
    name, mark, files = argument.partition("=")
    if not mark or Path(argument).is_file():  # a file name may contain an equals sign
        name, mark, files = "", "", argument
    labelled: list[tuple[str, list[str], Point]] = []
    paths = [files] if Path(files).is_file() else files.split(",")
    results = [(path, found) for path in paths for found in _objects(path)]
    several = len({found.get("set") for _, found in results}) > 1
    for path, found in results:
        family, note = _family(str(found.get("policy") or ""))
        point = Point(found["scores"], found.get("intervals") or {}, note, str(found.get("unit") or ""))
        label = family or (Path(path).stem if len(paths) == 1 or not mark else "")
        if several:
            label = ", ".join(filter(None, (label, str(found.get("set") or "own files"))))
        labelled.append((label, _decoding(found), point))
    curves: Curves = {}
    for label, parts, point in labelled:
        like = [others for other, others, _ in labelled if other == label]
        own = [part for part in parts if not all(part in others for others in like)]  # options that differ
        curves.setdefault(", ".join(filter(None, (label, *own))), []).append(point)
    if not mark:
        return curves
    return {name if len(curves) == 1 else f"{name}, {family}": points for family, points in curves.items()}


def _decoding(found: dict[str, Any]) -> list[str]:
    """The decoding options from the signature, without the policy."""
    signatures = found.get("signatures")
    written = str(signatures.get("decoding") or "") if isinstance(signatures, dict) else ""
    parts = (part.partition(":") for part in written.split("|") if part)
    return [f"{name}={value}" for name, _, value in parts if not name.startswith("policy")]


def _family(written: str) -> tuple[str, str]:
    """The name of the curve and the label of the point for a policy.

    >>> _family("wait-k:3"), _family("wait-k:3,c=0.25"), _family("wait-k:3,unit=piece"), _family("full")
    (('wait-k', '3'), ('wait-k, c=0.25', '3'), ('wait-k, unit=piece', '3'), ('full', ''))
    """
    name, _, rest = written.partition(":")
    parts = rest.split(",")
    options = [part for part in parts if "=" in part]
    return ", ".join([name, *options]), ",".join(part for part in parts if "=" not in part)


def _unit(latency: str, curves: Curves) -> str:
    speech = any(point.unit == "ms" for points in curves.values() for point in points)
    return UNITS.get(latency, "ms" if speech or latency.endswith("_CA") else COUNTED)


def _objects(path: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{path}: not valid JSON: {error}") from None
    objects = found if isinstance(found, list) else [found]
    if not objects or not all(isinstance(one, dict) and isinstance(one.get("scores"), dict) for one in objects):
        raise UserError(f'{path}: expected the output of `stacl score --json`, an object with "scores"')
    for one in objects:
        intervals = one.get("intervals") or {}
        ends: list[Any] = list(intervals.values()) if isinstance(intervals, dict) else [None]
        pairs = [pair for pair in ends if isinstance(pair, list) and len(pair) == 2]
        numbers = [*(score for score in one["scores"].values() if score is not None), *chain(*pairs)]
        if len(pairs) < len(ends) or not all(map(_is_plottable, numbers)):
            raise UserError(f"{path}: expected a number or null for each score, and two numbers for each interval")
    return objects


def _is_plottable(number: Any) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < 1e12  # also rejects NaN


def draw(curves: Curves, latencies: list[str], quality: str, title: str | None = None) -> Figure:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(4.6 * len(latencies) + 0.4, 4.0), layout="constrained")
    panels = figure.subplots(1, len(latencies), sharey=True, squeeze=False)[0]
    for axes, latency in zip(panels, latencies, strict=True):
        far = _far_points(curves, latency, quality)
        for number, (name, points) in enumerate(curves.items()):
            if name in far:
                _at_the_edge(axes, points[0], latency, quality, number)
            else:
                _curve(axes, points, latency, quality, number)
        axes.set_xlabel(f"{latency}  ({_unit(latency, curves)})")
        axes.grid(color="#DDDDDD", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.margins(0.1)
    panels[0].set_ylabel(quality)
    handles = [
        Line2D([], [], label=name, **_style(number, points)) for number, (name, points) in enumerate(curves.items())
    ]
    # Below the panels: a legend inside a panel would hide points.
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(3, len(handles)), frameon=False, handlelength=4
    )
    if title:
        figure.suptitle(title, fontsize=11)
    return figure


def _style(number: int, points: list[Point]) -> dict[str, Any]:
    colour = base.COLOURS[number % len(base.COLOURS)]
    return {
        "color": colour,
        "linestyle": base.LINES[number % len(base.LINES)] if len(points) > 1 else "",
        "marker": base.MARKERS[number % len(base.MARKERS)],
        "markersize": 7,
        # A white edge separates the markers where curves cross.
        "markeredgecolor": "white" if colour != base.YELLOW else base.BLACK,
        "markeredgewidth": 0.8,
        "linewidth": 1.8,
    }


def _far_points(curves: Curves, latency: str, quality: str) -> set[str]:
    """Names of single points so far to the right that they would compress the curves, such as full-sentence systems."""
    single = {name: points[0].value(latency) for name, points in curves.items() if len(points) == 1}
    values = [p.value(latency) for points in curves.values() if len(points) > 1 for p in points]
    reach = max((value for value in values if not math.isnan(value)), default=math.inf)
    return {name for name, value in single.items() if value > reach + 0.5 * abs(reach)}


def _at_the_edge(axes: Axes, point: Point, latency: str, quality: str, number: int) -> None:
    """Draw the quality of a far point as a horizontal line, with its latency as text at the edge."""
    up = point.value(quality)
    if math.isnan(up):
        return
    style = _style(number, [point])
    axes.axhline(up, color=style["color"], linestyle=base.LINES[number % len(base.LINES)], linewidth=1.1, zorder=1)
    axes.plot([1], [up], transform=axes.get_yaxis_transform(), clip_on=False, zorder=5, **style)
    axes.annotate(
        f"at {point.value(latency):.3g} →",
        (1, up),
        xycoords=axes.get_yaxis_transform(),
        ha="right",
        xytext=(-8, 5),
        textcoords="offset points",
        fontsize=8,
    )


def _curve(axes: Axes, points: list[Point], latency: str, quality: str, number: int) -> None:
    both = [p for p in points if not math.isnan(p.value(latency) + p.value(quality))]
    kept = sorted(both, key=lambda point: point.value(latency))
    across, up = [p.value(latency) for p in kept], [p.value(quality) for p in kept]
    style = _style(number, points)
    x_errors, y_errors = _error_bars(kept, latency), _error_bars(kept, quality)
    axes.errorbar(across, up, xerr=x_errors, yerr=y_errors, elinewidth=1, capsize=2.5, **style)
    # Consecutive curves have their labels on different sides.
    beside = ((6, -11), (-10, 6), (6, 5), (-10, -11))[number % 4]
    for x, y, point in zip(across, up, kept, strict=True):
        axes.annotate(point.note, (x, y), xytext=beside, textcoords="offset points", fontsize=8, color=style["color"])


def _error_bars(points: list[Point], score: str) -> list[list[float]] | None:
    """Distances from each point to the lower and upper end of its interval; None without intervals."""
    if not any(score in point.intervals for point in points):
        return None
    below, above = [], []
    for point in points:
        value = point.value(score)
        low, high = point.intervals.get(score, [value, value])
        below.append(max(0.0, value - low))
        above.append(max(0.0, high - value))
    return [below, above]
