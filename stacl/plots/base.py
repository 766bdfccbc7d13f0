"""Shared parts of all plots: colours, fonts with Chinese characters, alignments, saving."""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stacl.support.errors import UserError
from stacl.traces import logs
from stacl.traces.trace import Trace

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from matplotlib.figure import Figure

# The palette of Okabe and Ito: distinguishable with any colour vision, and by lightness in grey print.
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, YELLOW, BLACK = COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000",
)  # fmt: skip
GREY = "#767676"
# Curves also differ by marker and line style, not by colour alone.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)), (0, (3, 1)))
ENDINGS = (".svg", ".png", ".pdf")
CJK_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK TC", "Noto Sans SC", "Source Han Sans SC",
    "Source Han Sans CN", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "AR PL UMing CN",
    "PingFang SC", "Hiragino Sans GB", "Heiti SC", "Microsoft YaHei", "SimHei", "Arial Unicode MS",
)  # fmt: skip

Links = frozenset[tuple[int, int]]  # (source position, target position), both from 1


def add_common_options(parser: ArgumentParser) -> None:
    parser.add_argument("--out", required=True, metavar="FILE", help=f"output file ({', '.join(ENDINGS)})")
    parser.add_argument("--font", metavar="FILE", help="font file for characters that the default font lacks")
    parser.add_argument("--title", metavar="TEXT", help="title of the plot")


def add_sentence_options(parser: ArgumentParser, alignments: str | None = None) -> None:
    """Options that select one sentence. `alignments="+"` accepts one alignment file per log."""
    parser.add_argument("--sentence", type=int, default=1, metavar="N", help="sentence number, from 1 (default 1)")
    parser.add_argument("--source", metavar="F", help="source text, one sentence per line, if the log has none")
    what = "word alignments, source-target, one sentence per line: 0-0 1-2"
    if alignments:
        what += "; one file per log, in the same order"
    parser.add_argument("--alignment", nargs=alignments, metavar="F", help=what)
    parser.add_argument("--one-based", action="store_true", help="alignments count from 1 (default: from 0)")


def pick(path: str, number: int, source_file: str | None) -> Trace:
    """Sentence `number` of a log, from 1. The source words come from a file if the log has none."""
    if number < 1:
        raise UserError(f"--sentence must be 1 or more, not {number}")
    trace = next(islice(logs.read(path), number - 1, None), None)
    if trace is None:
        raise UserError(f"{path} has fewer than {number} sentences")
    trace = replace(
        trace, source=_without_surrogates(trace.source), target=_without_surrogates(trace.target), revisions=()
    )
    if trace.source or source_file is None:
        return trace
    words = tuple(line_of(source_file, number).split())
    if len(words) != trace.source_length:
        raise UserError(
            f"{source_file}:{number}: {len(words)} words, but the source length in the log is {trace.source_length}"
        )
    return Trace(trace.source_length, trace.delays, words, trace.target, trace.unit, policy=trace.policy)


def _without_surrogates(words: Iterable[str]) -> tuple[str, ...]:
    """Replace unpaired surrogates, which JSON can hold and matplotlib cannot draw."""
    return tuple(word.encode("utf-8", "replace").decode("utf-8") for word in words)


def line_of(path: str, number: int) -> str:
    lines = logs.read_lines(path)
    if number > len(lines):
        raise UserError(f"{path} has {len(lines)} lines, but line {number} is needed")
    return lines[number - 1]


def read_links(path: str, number: int, one_based: bool, trace: Trace) -> Links:
    """The alignment of one sentence. Sure (`-`) and possible links (`?`, `p`) are drawn the same."""
    found = set()
    for pair in line_of(path, number).split():
        parts = re.fullmatch(r"(\d+)[-?:pP](\d+)", pair)
        if not parts:
            raise UserError(f"{path}:{number}: expected pairs such as 0-0 1-2, found {pair!r}")
        link = (int(parts[1]) + (not one_based), int(parts[2]) + (not one_based))
        if not (1 <= link[0] <= trace.source_length and 1 <= link[1] <= len(trace.delays)):
            raise UserError(
                f"{path}:{number}: the link {pair} is outside the {trace.source_length} source and "
                f"{len(trace.delays)} target words"
            )
        found.add(link)
    return frozenset(found)


def anticipated(delays: Iterable[int], links: Links) -> set[int]:
    """Target positions (from 1) that were written before any source word they are aligned to was read.

    >>> sorted(anticipated([1, 1, 3], frozenset({(1, 1), (3, 2), (3, 3)})))
    [2]
    """
    needed: dict[int, int] = {}
    for source, target in links:
        needed[target] = min(source, needed.get(target, source))
    return {t for t, delay in enumerate(delays, 1) if needed.get(t, 0) > delay}


def prepare(texts: Iterable[str], font: str | None = None) -> None:
    """Configure matplotlib: no display, our style, and a font for every character that will be drawn."""
    try:
        import matplotlib
    except ImportError:
        raise UserError("plots need matplotlib: pip install 'stacl[plot]'") from None
    matplotlib.use("Agg")
    # Suppress warnings about Chinese fonts without a bold face.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    families = ["DejaVu Sans"]
    if font is not None:
        families.append(_add_font(font))
    elif any(_is_wide(character) for text in texts for character in text):
        wide = find_cjk_font()
        if wide is None:
            print(
                "stacl plot: no font with Chinese characters found, they are drawn as boxes; "
                "install one (Debian: fonts-noto-cjk) or give --font",
                file=sys.stderr,
            )
        else:
            families.append(wide)
    _report_missing(texts, families)
    matplotlib.rcParams.update(
        {
            "font.family": families,
            "font.size": 10,
            "text.parse_math": False,  # "US$5-US$10" is not a formula
            "axes.spines.top": False,
            "axes.spines.right": False,
            "svg.fonttype": "path",  # outlines: the plot looks the same without the font
            "svg.hashsalt": "stacl",  # the same plot gives the same bytes
            "savefig.bbox": "tight",
            "savefig.dpi": 200,
        }
    )


def _report_missing(texts: Iterable[str], families: Sequence[str]) -> None:
    """Warn about the first character without a font. `prepare` warns about Chinese characters."""
    from matplotlib import font_manager

    fonts = [font_manager.get_font(font_manager.findfont(family)) for family in families]
    for character in dict.fromkeys("".join(texts)):
        known = character.isspace() or _is_wide(character) or any(font.get_char_index(ord(character)) for font in fonts)
        if not known:
            print(f"stacl plot: no font has {character!r}, it is drawn as a box; give --font", file=sys.stderr)
            return


def find_cjk_font() -> str | None:
    """The name of an installed font that has Chinese characters."""
    from matplotlib import font_manager

    known = {entry.name for entry in font_manager.fontManager.ttflist}
    for name in CJK_FONTS:
        if name in known:
            return name
    # matplotlib caches its font list; search again for fonts installed since.
    for path in font_manager.findSystemFonts():
        if any(part in Path(path).name.lower() for part in ("cjk", "wqy", "hansans", "droidsansfallback")):
            return _add_font(path)
    return None


def _add_font(path: str) -> str:
    from matplotlib import font_manager

    try:
        font_manager.fontManager.addfont(path)
        return font_manager.FontProperties(fname=path).get_name()
    except (OSError, RuntimeError) as error:
        raise UserError(f"cannot use the font {path}: {error}") from None


def _is_wide(character: str) -> bool:
    """Whether it is Chinese, Japanese or Korean, including punctuation: DejaVu lacks these."""
    return "\u2e80" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7af" or "\uff00" <= character <= "\uffef"


def check_ending(path: str) -> None:
    if Path(path).suffix.lower() not in ENDINGS:
        raise UserError(f"--out {path}: the file name must end with {', '.join(ENDINGS)}")


def save(figure: Figure, path: str) -> None:
    """Write the plot. The same input gives the same bytes."""
    metadata: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(
        Path(path).suffix.lower(), {}
    )
    with silent_about_glyphs():
        try:
            figure.savefig(path, metadata=metadata)
        except OSError as error:
            raise UserError(f"cannot write {path}: {error.strerror}") from None


@contextmanager
def silent_about_glyphs() -> Iterator[None]:
    """Suppress matplotlib's warnings: `prepare` has already reported missing glyphs."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Gg]lyph .* missing")
        yield
