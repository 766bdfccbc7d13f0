"""Pictures: that they are drawn, from what, and what they say when they cannot be."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stacl.__main__ import main
from stacl.plots import base, example, path, tradeoff
from stacl.traces import logs
from stacl.traces.trace import Trace
from tests.plots.conftest import GERMAN, drawn_text

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

LINKS = frozenset({(1, 1), (2, 2), (5, 2), (3, 3), (4, 4)})


def test_examples_in_docstrings() -> None:
    for module in (base, example, path, tradeoff):
        assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["path", "de.jsonl", "--sentence", "2", "--alignment", "links", "--one-based"],
        ["example", "de.jsonl", "early.jsonl", "--alignment", "links", "--gloss", "he has the book read"],
        ["tradeoff", "ours=ours.json", "theirs=theirs1.json,theirs3.json", "--x", "AL", "CW"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_pictures_are_written(folder: Path, arguments: list[str], ending: str) -> None:
    assert main(["plot", *arguments, "--out", f"picture.{ending}"]) == 0
    content = Path(f"picture.{ending}").read_bytes()
    assert content.startswith({"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[ending])
    assert len(content) > 5000
    # The same input gives the same file.
    assert main(["plot", *arguments, "--out", f"again.{ending}"]) == 0
    assert Path(f"again.{ending}").read_bytes() == content


def test_anticipation() -> None:
    """A word is anticipated if all that it is aligned to comes later; an unaligned word is not."""
    assert base.anticipated(GERMAN.delays, LINKS) == set()
    assert base.anticipated((1, 1, 3, 5), LINKS) == {2}
    assert base.anticipated((1, 1), frozenset()) == set()


def test_path_shows_words_cutoff_and_anticipation() -> None:
    base.prepare([])
    early = Trace(5, (1, 1, 3, 5), source=GERMAN.source, target=GERMAN.target, policy="mine")
    figure = path.draw(early, LINKS)
    texts = drawn_text(figure)
    assert {*GERMAN.source, *GERMAN.target} <= set(texts)
    assert "cut-off: step 4 has the whole source" in texts
    assert any("1 of 4 words anticipated" in text for text in texts)
    (axes,) = figure.axes
    bold = {label.get_text() for label in axes.get_yticklabels() if label.get_fontweight() == "bold"}
    assert bold == {"read"}
    path_line: Any = next(line for line in axes.lines if line.get_label() == "path: → read, ↓ write")
    assert [tuple(point) for point in path_line.get_xydata()][:4] == [(0, 0), (1, 0), (1, 1), (1, 1)]


def test_path_without_words_shows_positions() -> None:
    base.prepare([])
    texts = drawn_text(path.draw(Trace(3, (1, 2))))
    assert {"1", "2", "3"} <= set(texts)
    assert not any("cut-off" in text for text in texts)


def test_example_puts_words_where_they_were_written() -> None:
    """As in the paper: what was decided after s source words stands under word s+1, the rest at the end."""
    cells = example.columns(GERMAN, early={2})
    assert [[cell.words for cell in column] for column in cells] == [
        [],
        [],
        [],
        [(("he", False),)],
        [(("read", True),)],
        [(("the", False), ("book", False))],
    ]
    long = Trace(1, (1,) * 20, target=("word",) * 20)
    assert sum(len(cell.words) for cell in example.columns(long, set())[-1]) == 20
    assert len(example.columns(long, set())[-1]) > 1


def test_example_folds_long_sentences() -> None:
    assert example._bands([1.0, 1.0, 1.0, 5.0], 2.5) == [range(2), range(2, 3), range(3, 4)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["path", "de.jsonl", "--out", "x.gif"], "must end with .svg, .png, .pdf"),
        (["path", "nowhere", "--out", "x.svg"], "cannot read nowhere"),
        (["path", "de.jsonl", "--sentence", "3", "--out", "x.svg"], "de.jsonl has fewer than 3 sentences"),
        (["path", "de.jsonl", "--sentence", "0", "--out", "x.svg"], "--sentence must be 1 or more"),
        (
            ["path", "de.jsonl", "--alignment", "bad", "--out", "x.svg"],
            "bad:1: expected pairs such as 0-0 1-2",
        ),
        (
            ["path", "de.jsonl", "--alignment", "links", "--one-based", "--out", "x.svg"],
            "links:1: the link 0-0 is outside",
        ),
        (["path", "de.jsonl", "--font", "links", "--out", "x.svg"], "cannot use the font links"),
        (["path", "de.jsonl", "--out", "no/where.svg"], "cannot write no/where.svg"),
        (["example", "paths", "--out", "x.svg"], "none of the logs has source words"),
        (
            ["example", "paths", "--source", "source", "--out", "x.svg"],
            "source:1: 1 words, but the source length in the log is 2",
        ),
        (["example", "de.jsonl", "--gloss", "one two", "--out", "x.svg"], "--gloss has 2 words for 5"),
        (["example", "de.jsonl", "--width", "nan", "--out", "x.svg"], "--width must be a number of inches, not nan"),
        (["example", "de.jsonl", "--label", "a", "--label", "b", "--out", "x.svg"], "2 labels, but 1 logs"),
        (["tradeoff", "links", "--out", "x.svg"], "links: not valid JSON"),
        (
            ["tradeoff", "empty.json", "--out", "x.svg"],
            "empty.json: expected the output of `stacl score --json`",
        ),
        (
            ["tradeoff", "ours.json", "--x", "ALL", "--out", "x.svg"],
            "no system has the score 'ALL'; did you mean AL?",
        ),
    ],
)
def test_mistakes(folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    Path("bad").write_text("a-b\n", encoding="utf-8")
    Path("paths").write_text("RRW\n", encoding="utf-8")
    Path("source").write_text("wort\n", encoding="utf-8")
    Path("empty.json").write_text("{}", encoding="utf-8")
    assert main(["plot", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    "content",
    [
        '{"scores": {"AL": "x", "BLEU": null}}',
        '{"scores": {"AL": [1], "BLEU": 2}}',
        '{"scores": {"AL": NaN, "BLEU": 2}}',
        '{"scores": {"AL": 1e308, "BLEU": 2}}',
        '{"scores": {"AL": 1, "BLEU": 2}, "intervals": {"AL": 3}}',
        '{"scores": {"AL": 1, "BLEU": 2}, "intervals": {"AL": [3]}}',
        '{"scores": {"AL": 1, "BLEU": 2}, "intervals": {"AL": [3, "x"]}}',
        '{"scores": {"AL": 1, "BLEU": 2}, "intervals": [3]}',
    ],
)
def test_scores_that_cannot_be_drawn(folder: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    Path("odd.json").write_text(content, encoding="utf-8")
    assert main(["plot", "tradeoff", "odd.json", "--out", "x.svg"]) == 2
    assert "odd.json: expected a number or null for each score" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (Trace(0, ()), "sentence 1 of odd.jsonl is empty; choose another"),
        (Trace(3, ()), "sentence 1 of odd.jsonl has no output; choose another"),
        (Trace(0, (0, 0)), "sentence 1 of odd.jsonl has no source; choose another"),
        (
            Trace(800, tuple(range(1, 801))),
            "has 800 units; a plot can show 150; choose another with --sentence",
        ),
    ],
)
def test_paths_that_cannot_be_drawn(
    folder: Path, capsys: pytest.CaptureFixture[str], trace: Trace, message: str
) -> None:
    logs.write([trace], "odd.jsonl", "trace")
    assert main(["plot", "path", "odd.jsonl", "--out", "x.png"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["path", "example"])
def test_half_a_character_is_drawn_as_something(folder: Path, kind: str) -> None:
    Path("half.jsonl").write_text('{"source_length": 1, "delays": [1], "source": ["a"], "target": ["\\ud800"]}\n')
    assert main(["plot", kind, "half.jsonl", "--out", "x.svg"]) == 0


@pytest.mark.parametrize("kind", ["path", "example"])
def test_chinese_without_a_font_is_said_once(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    logs.write([Trace(2, (1, 2), source=("你", "好"), target=("hello", "!"))], "zh.jsonl", "trace")
    monkeypatch.setattr(base, "find_cjk_font", lambda: None)
    assert main(["plot", kind, "zh.jsonl", "--out", "zh.svg"]) == 0
    error = capsys.readouterr().err
    assert error.count("fonts-noto-cjk") == 1
    assert error.count("\n") == 2  # and what was written


def test_chinese_with_a_font(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    base.prepare([])
    assert base.find_cjk_font(), "no font with Chinese characters; `make test` installs Debian's fonts-noto-cjk"
    logs.write([Trace(2, (1, 2), source=("你", "好"), target=("hello", "!"))], "zh.jsonl", "trace")
    assert main(["plot", "example", "zh.jsonl", "--out", "zh.svg"]) == 0
    assert "font" not in capfd.readouterr().err


def test_colours_differ_in_grey() -> None:
    """On paper without colour the first systems of a plot still have different greys, and different
    markers.
    """

    def grey(colour: str) -> float:
        red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    greys = [grey(colour) for colour in base.COLOURS]
    assert abs(greys[0] - greys[1]) > 0.15
    assert len(set(base.MARKERS)) == len(base.MARKERS) == len(base.LINES) == len(base.COLOURS)


def test_commands_without_a_picture_import_no_matplotlib() -> None:
    program = "import sys, stacl.__main__ as m; m.build_parser(); sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_dollars_and_scripts_without_a_font(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = Trace(2, (1, 2), source=("a", "b"), target=("${a}_${b}", "สวัสดี"))
    logs.write([trace], "odd.jsonl", "trace")
    assert main(["plot", "path", "odd.jsonl", "--out", "odd.png"]) == 0
    assert "no font has 'ส', it is drawn as a box" in capsys.readouterr().err


def test_speech_has_milliseconds(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.write([Trace(3200, (1000, 3200), target=("a", "b"), unit="ms")], "speech.jsonl", "trace")
    assert main(["plot", "path", "speech.jsonl", "--out", "speech.png"]) == 2
    assert "is a log of speech" in capsys.readouterr().err
    curves = {"s": [tradeoff.Point({"AL": 900.0, "BLEU": 20.0}, {}, unit="ms")]}
    (axes,) = tradeoff.draw(curves, ["AL"], "BLEU").axes
    assert axes.get_xlabel() == "AL  (ms)"


def test_a_tail_with_hyphens_is_folded() -> None:
    words = [
        "A",
        "man",
        "and",
        "a",
        "kid",
        "are",
        "with",
        "a",
        "well-known",
        "friend",
        "and",
        "then",
        "they",
        "came",
        "home",
        "to",
        "the",
        "house",
        "again",
    ]
    trace = Trace(1, (1,) * len(words), source=("x",), target=tuple(words))
    assert len(example.columns(trace, set())[-1]) == 3


def test_pieces_and_words_have_no_common_axis(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for unit in ("word", "piece", "char"):
        scores = {"AL": 3.0, "AL_CA": 900.0, "BLEU": 20.0}
        Path(f"{unit}.json").write_text(json.dumps({"scores": scores, "unit": unit}), encoding="utf-8")
    assert main(["plot", "tradeoff", "word.json", "piece.json", "--out", "x.svg"]) == 2
    assert "some systems count latency in pieces and some in words" in capsys.readouterr().err
    for others in (["word.json", "char.json"], ["word.json", "piece.json", "--x", "AL_CA"]):
        assert main(["plot", "tradeoff", *others, "--out", "x.svg"]) == 0


def test_the_lag_of_characters_is_counted_in_source_words() -> None:
    figure = path.draw(Trace(3, (1, 2, 3), target=("你", "好", "吗"), unit="char"))
    assert figure.axes[0].get_title(loc="left") == "AL 1.00 words"
