"""What is drawn on a terminal."""

from __future__ import annotations

import io

from stacl.commands._terminal import TerminalView
from stacl.text.languages import language
from tests.helpers import frames


def test_a_finished_line_stays_whole_and_a_narrow_window_is_kept_to(monkeypatch):
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


def test_wide_signs_are_shown_as_they_will_be_heard():
    out = io.StringIO()
    view = TerminalView(language("zh"), language("en"), out)
    for key in "２０１９年我":
        view.add_key(key)
    view.add_source("2019")
    assert frames(out.getvalue())[-1][0] == "2019年我"


def test_a_word_that_was_broken_off_does_not_stay():
    out = io.StringIO()
    view = TerminalView(language("de"), language("en"), out)
    view.add_source("Ein")
    view.add_target("A")
    view.set_open_word("Hun")
    view.end_line()
    assert frames(out.getvalue())[-1] == ("Ein", "A")


def test_letters_that_make_no_word_yet_are_seen():
    """Where no space ends a word, the next letters do: until then they are shown as they were typed."""
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
