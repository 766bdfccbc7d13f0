"""The output on a terminal."""

from __future__ import annotations

import io

import pytest

from stacl.commands._terminal import TerminalView
from stacl.text.languages import language
from tests.helpers import frames


def test_a_finished_line_stays_whole_and_an_open_one_fits_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    view = TerminalView(language("de"), language("en"), out)
    words = [f"word{number}" for number in range(40)]
    for columns in (30, 12):
        monkeypatch.setenv("COLUMNS", str(columns))
        for word in words:
            view.add_source(word)
            view.add_target(word)
            view.set_lag(3)
        assert max(map(len, frames(out.getvalue())[-1])) < columns
        view.end_line()
        assert frames(out.getvalue())[-1] == (" ".join(words), " ".join(words))


def test_wide_characters_are_shown_cleaned() -> None:
    out = io.StringIO()
    view = TerminalView(language("zh"), language("en"), out)
    for key in "２０１９年我":
        view.add_key(key)
    view.add_source("2019")
    assert frames(out.getvalue())[-1][0] == "2019年我"


def test_an_unfinished_word_is_removed() -> None:
    out = io.StringIO()
    view = TerminalView(language("de"), language("en"), out)
    view.add_source("Ein")
    view.add_target("A")
    view.set_open_word("Hun")
    view.end_line()
    assert frames(out.getvalue())[-1] == ("Ein", "A")


def test_letters_of_an_unfinished_word_are_shown() -> None:
    """Without spaces, the next letters end a word. Until then letters are shown as typed."""
    out = io.StringIO()
    view = TerminalView(language("zh"), language("en"), out)
    for key in "你好吗":
        view.add_key(key)
    assert frames(out.getvalue())[-1] == ("你好吗", "")
    view.add_source("你好")
    view.add_target("Hello")
    view.set_lag(1)
    assert frames(out.getvalue())[-1] == ("你好吗", "Hello  1 word behind")
    view.add_source("吗")
    assert frames(out.getvalue())[-1][0] == "你好吗"
