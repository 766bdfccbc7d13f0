"""The paper's example display: source words, and below them the target words written at that time.

A word that was written after s source words is shown below source word s+1, which is being spoken at that time. Words
written after the end of the source are in the last column. Several logs of the same source give several rows. With
alignments (one file per log), anticipated words are bold, coloured and underlined.

  stacl plot example wait3.jsonl wait5.jsonl --sentence 7 --gloss "he also said" --out example.png
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stacl.plots import base
from stacl.support.errors import UserError
from stacl.traces.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINE_HEIGHT = 0.24  # inches
GAP = 0.14  # inches between columns
TAIL_LETTERS = 34  # line length of the last column


@dataclass(frozen=True)
class Cell:
    """The words of one line, each with whether it is anticipated."""

    words: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class Row:
    label: str
    cells: list[list[Cell]]  # the lines of each column
    size: float = 10.5
    colour: str = base.BLACK


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="logs of systems on the same source")
    parser.add_argument("--label", action="append", default=[], metavar="TEXT", help="name of a log; repeat per log")
    parser.add_argument("--gloss", metavar="TEXT", help="gloss of the source, one word per source word")
    parser.add_argument("--width", type=float, default=13.0, metavar="INCHES", help="maximum width (default 13)")
    base.add_sentence_options(parser, alignments="+")


def picture(args: argparse.Namespace) -> Figure:
    traces = [base.pick(path, args.sentence, args.source) for path in args.files]
    source = next((trace.source for trace in traces if trace.source), None)
    if source is None:
        raise UserError("none of the logs has source words; give --source")
    for path, trace in zip(args.files, traces, strict=True):
        if (trace.source and trace.source != source) or len(source) != trace.source_length:
            raise UserError(f"{path}: sentence {args.sentence} has a different source than {args.files[0]}")
        if trace.delays and not trace.target:
            raise UserError(f"{path} has no target words; log them as a trace")
    gloss = args.gloss.split() if args.gloss else []
    if gloss and len(gloss) != len(source):
        raise UserError(f"--gloss has {len(gloss)} words for {len(source)} source words; join several with ~")
    if len(args.alignment or ()) > len(traces):
        raise UserError(f"{len(args.alignment)} files after --alignment, but {len(traces)} logs")
    aligned = zip(args.alignment or (), traces, strict=False)
    links = [base.read_links(path, args.sentence, args.one_based, trace) for path, trace in aligned]
    names = [_name(trace, path) for trace, path in zip(traces, args.files, strict=True)]
    if not 0 < args.width < 1000:
        raise UserError(f"--width must be a number of inches, not {args.width:g}")
    if len(args.label) > len(traces):
        raise UserError(f"{len(args.label)} labels, but {len(traces)} logs")
    names = [*args.label, *names[len(args.label) :]][: len(traces)]
    texts = [*source, *(word for trace in traces for word in trace.target), *names, args.title or "", *gloss]
    base.prepare(texts, args.font)
    return draw(traces, names, list(source), gloss, links, args.width, args.title)


def _name(trace: Trace, path: str) -> str:
    return trace.policy or Path(path).stem


def columns(trace: Trace, early: set[int]) -> list[list[Cell]]:
    """The lines of words written at each source position, and in the last column after the end."""
    places: list[list[tuple[str, bool]]] = [[] for _ in range(trace.source_length + 1)]
    for t, (delay, word) in enumerate(zip(trace.delays, trace.target, strict=True), 1):
        places[delay].append((word, t in early))
    found = [[Cell(tuple(words))] if words else [] for words in places[:-1]]
    return [*found, _wrapped(places[-1])]


def _wrapped(words: list[tuple[str, bool]]) -> list[Cell]:
    lines: list[Cell] = []
    taken = 0
    for line in textwrap.wrap(
        " ".join(word for word, _ in words), TAIL_LETTERS, break_long_words=False, break_on_hyphens=False
    ):
        count = len(line.split())
        lines.append(Cell(tuple(words[taken : taken + count])))
        taken += count
    return lines if taken == len(words) else [Cell(tuple(words))]


def _one_per_column(words: list[str]) -> list[list[Cell]]:
    return [[Cell(((word, False),))] for word in words] + [[]]


def draw(
    traces: list[Trace],
    names: list[str],
    source: list[str],
    gloss: list[str] | None = None,
    links: Sequence[base.Links] = (),
    width: float = 13.0,
    title: str | None = None,
) -> Figure:
    from matplotlib.figure import Figure

    positions = _one_per_column([str(s) for s in range(1, len(source) + 1)])
    positions[-1] = [Cell((("end", False),))]
    rows = [
        Row("", positions, 8.5, base.GREY),
        Row("", _one_per_column(source), 12),
    ]
    if gloss:
        rows.append(Row("", _one_per_column([word.replace("~", " ") for word in gloss]), 9, base.GREY))
    heads = len(rows)
    for number, (name, trace) in enumerate(zip(names, traces, strict=True)):
        early = base.anticipated(trace.delays, links[number]) if number < len(links) else set()
        rows.append(Row(name, columns(trace, early)))
    measure = _Ruler()
    widths = [max((measure(row, s) for row in rows), default=0.0) for s in range(len(source) + 1)]
    margin = max(measure.text(row.label, 10) for row in rows) + 2 * GAP
    bands = _bands(widths, width - margin)
    figure = Figure(figsize=(1, 1))
    painter = _Painter(figure, rows, heads, margin)
    for band in bands:
        painter.band(band, widths)
    if title:
        painter.texts.append((0.0, -0.35, title, 11.5, base.BLACK, False))
    painter.finish()
    return figure


def _bands(widths: list[float], room: float) -> list[range]:
    """Split the columns into bands that fit the width; a long sentence continues in the next band."""
    bands, start, used = [], 0, 0.0
    for s, width in enumerate(widths):
        if s > start and used + width > room:
            bands.append(range(start, s))
            start, used = s, 0.0
        used += width
    return [*bands, range(start, len(widths))]


class _Ruler:
    """Measures the width of a text in inches."""

    def __init__(self) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.figure = Figure(dpi=200)
        self.renderer = FigureCanvasAgg(self.figure).get_renderer()

    def text(self, text: str, size: float, bold: bool = False) -> float:
        if not text:
            return 0.0
        drawn = self.figure.text(0, 0, text, fontsize=size, fontweight="bold" if bold else "normal")
        with base.silent_about_glyphs():
            extent = drawn.get_window_extent(self.renderer).width / 200
        drawn.remove()
        return float(extent)

    def line(self, cell: Cell, size: float) -> float:
        space = self.text("n", size) * 0.6
        return sum(self.text(word, size, early) + space for word, early in cell.words) - space

    def __call__(self, row: Row, column: int) -> float:
        return max((self.line(cell, row.size) for cell in row.cells[column]), default=0.0) + GAP


class _Painter:
    """Collects texts and lines with their positions in inches from the top left, then sizes the figure."""

    def __init__(self, figure: Figure, rows: list[Row], heads: int, margin: float) -> None:
        self.figure, self.rows, self.heads, self.margin = figure, rows, heads, margin
        self.texts: list[tuple[float, float, str, float, str, bool]] = []
        self.rules: list[tuple[float, float, float, float, str]] = []  # x, y, x, y, colour
        self.ruler = _Ruler()
        self.y = 0.0

    def band(self, band: range, widths: list[float]) -> None:
        left = {s: self.margin + sum(widths[band.start : s]) for s in band}
        right = self.margin + sum(widths[s] for s in band)
        top = self.y
        for number, row in enumerate(self.rows):
            if number < self.heads and not any(row.cells[s] for s in band):
                continue  # no source words above the words written after the end
            lines = max(1, *(len(row.cells[s]) for s in band))
            if number == self.heads:
                self.rules.append((0, self.y + 0.02, right, self.y + 0.02, base.BLACK))
                self.y += 0.08
            self.texts.append((0, self.y, row.label, 10, base.BLACK, False))
            for s in band:
                for line, cell in enumerate(row.cells[s]):
                    self._cell(cell, left[s], self.y + line * LINE_HEIGHT, row)
            self.y += lines * LINE_HEIGHT + 0.04
        if any(row.label for row in self.rows):
            self.rules.append((self.margin - GAP, top, self.margin - GAP, self.y, base.GREY))
        self.y += 0.25

    def _cell(self, cell: Cell, x: float, y: float, row: Row) -> None:
        space = self.ruler.text("n", row.size) * 0.6
        for word, early in cell.words:
            wide = self.ruler.text(word, row.size, early)
            self.texts.append((x, y, word, row.size, base.VERMILION if early else row.colour, early))
            if early:
                self.rules.append((x, y + 0.2, x + wide, y + 0.2, base.VERMILION))
            x += wide + space

    def finish(self) -> None:
        from matplotlib.lines import Line2D

        top = min([y for _, y, *_ in self.texts], default=0.0)
        width = max([x2 for _, _, x2, _, _ in self.rules] + [self.margin]) + 0.05
        height = self.y - top
        self.figure.set_size_inches(width, height)
        for x, y, text, size, colour, bold in self.texts:
            # Align baselines, not boxes: letters with descenders have taller boxes.
            self.figure.text(x / width, 1 - (y - top + 0.16) / height, text, fontsize=size, color=colour,
                             fontweight="bold" if bold else "normal", va="baseline")  # fmt: skip
        for x1, y1, x2, y2, colour in self.rules:
            across, up = (x1 / width, x2 / width), (1 - (y1 - top) / height, 1 - (y2 - top) / height)
            self.figure.add_artist(Line2D(across, up, color=colour, linewidth=0.9))
