"""The read/write path of a sentence on the grid of source and target words.

The shaded area shows the source words that were read before each target word was written. The line is the path (right:
READ, down: WRITE), shown with the ideal diagonal. With alignments, markers show aligned pairs of words. A target word
that was written before its source words were read is marked as anticipated.

  stacl plot path traces.jsonl --sentence 3 --alignment gold.txt --out path.svg
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from stacl.metrics import latency
from stacl.plots import base
from stacl.support.errors import UserError
from stacl.traces.trace import Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LARGEST = 150  # units per axis; a larger plot is unreadable and needs too much memory


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="log in any format of stacl score")
    base.add_sentence_options(parser)


def picture(args: argparse.Namespace) -> Figure:
    trace = base.pick(args.file, args.sentence, args.source)
    if trace.unit == "ms":
        raise UserError(f"{args.file} is a log of speech; a path needs source words")
    if problem := _problem(trace):
        raise UserError(f"sentence {args.sentence} of {args.file} {problem}; choose another with --sentence")
    links: base.Links = frozenset()
    if args.alignment:
        links = base.read_links(args.alignment, args.sentence, args.one_based, trace)
    base.prepare([*trace.source, *trace.target, args.title or ""], args.font)
    return draw(trace, links, args.title)


def _problem(trace: Trace) -> str:
    shortest, longest = sorted((trace.source_length, len(trace.delays)))
    if longest > _LARGEST:
        return f"has {longest} units; a plot can show {_LARGEST}"
    if shortest:
        return ""
    return "is empty" if not longest else f"has no {'output' if trace.source_length else 'source'}"


def draw(trace: Trace, links: base.Links = frozenset(), title: str | None = None) -> Figure:
    from matplotlib.figure import Figure

    width, height = trace.source_length, len(trace.delays)
    figure = Figure(figsize=(2.2 + 0.42 * max(width, 4), 1.2 + 0.34 * max(height, 4)))
    axes: Axes = figure.add_subplot()
    early = base.anticipated(trace.delays, links)
    _read_area(axes, trace)
    _path_line(axes, trace)
    _links(axes, trace, links)
    _words(axes, trace, early)
    axes.plot([0, width], [0, height], color=base.GREY, linestyle=(0, (4, 3)), linewidth=1, label="ideal diagonal")
    cutoff = trace.cutoff()
    if cutoff is not None:
        axes.plot([0, width], [cutoff, cutoff], color=base.PURPLE, linestyle=":", linewidth=1.6,
                  label=f"cut-off: step {cutoff} has the whole source")  # fmt: skip
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_aspect("equal" if max(width, height) <= 40 else "auto")
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, handlelength=2.2)
    axes.set_title(
        title if title is not None else _caption(trace, len(early), bool(links)),
        loc="left",
        pad=12,
        fontsize=11,
    )
    return figure


def _caption(trace: Trace, early: int, aligned: bool) -> str:
    lagging = latency(trace)["AL"]
    parts = [trace.policy] if trace.policy else []
    source_unit = "word" if trace.unit == "char" else trace.unit  # char is a unit of the target only
    parts += [] if lagging is None else [f"AL {lagging:.2f} {source_unit}s"]
    parts += [f"{early} of {len(trace.delays)} {trace.unit}s anticipated"] if aligned else []
    return ",  ".join(parts)


def _read_area(axes: Axes, trace: Trace) -> None:
    from matplotlib.patches import Rectangle

    for t, delay in enumerate(trace.delays):
        axes.add_patch(Rectangle((0, t), delay, 1, facecolor=base.SKY, alpha=0.30, linewidth=0))
    axes.add_patch(Rectangle((0, 0), 0, 0, facecolor=base.SKY, alpha=0.30, label="read before the word was written"))


def _path_line(axes: Axes, trace: Trace) -> None:
    corners = [(0, 0)]
    for t, delay in enumerate(trace.delays):
        corners += [(delay, t), (delay, t + 1)]
    corners.append((trace.source_length, len(trace.delays)))
    across, down = zip(*corners, strict=True)
    axes.plot(across, down, color=base.BLUE, linewidth=2.4, label="path: → read, ↓ write", clip_on=False, zorder=4)


def _links(axes: Axes, trace: Trace, links: base.Links) -> None:
    """Draw a filled dot where the source word was already read, else an open diamond."""
    styles: dict[bool, dict[str, Any]] = {
        True: {"marker": "o", "markersize": 6, "color": base.BLACK, "label": "aligned, already read"},
        False: {"marker": "D", "markersize": 6, "markerfacecolor": "white", "markeredgecolor": base.VERMILION,
                "markeredgewidth": 1.6, "label": "aligned, not yet read"},
    }  # fmt: skip
    for read, style in styles.items():
        chosen = sorted((s, t) for s, t in links if (s <= trace.delays[t - 1]) == read)
        if chosen:
            axes.plot([s - 0.5 for s, _ in chosen], [t - 0.5 for _, t in chosen], linestyle="", zorder=5, **style)


def _words(axes: Axes, trace: Trace, early: set[int]) -> None:
    """Label the axes with words, or positions if unknown. Anticipated words are bold and coloured."""
    width, height = trace.source_length, len(trace.delays)
    across = trace.source or [str(s) for s in range(1, width + 1)]
    down = trace.target or [str(t) for t in range(1, height + 1)]
    axes.xaxis.tick_top()
    axes.set_xticks([s + 0.5 for s in range(width)], across)
    if any(len(word) > 2 for word in trace.source):
        axes.tick_params(axis="x", labelrotation=50)
        for label in axes.get_xticklabels():
            label.set(ha="left", rotation_mode="anchor")
    axes.set_yticks([t + 0.5 for t in range(height)], down)
    for t, label in enumerate(axes.get_yticklabels(), 1):
        if t in early:
            label.set(color=base.VERMILION, fontweight="bold")
    axes.tick_params(length=0)
    axes.set_xticks(range(width + 1), minor=True)
    axes.set_yticks(range(height + 1), minor=True)
    axes.grid(which="minor", color="#CCCCCC", linewidth=0.6)
    axes.tick_params(which="minor", length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
