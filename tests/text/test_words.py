"""Arriving text: for any chunks, the words and lines are those of the whole text."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stacl.text.languages import language
from stacl.text.words import LINE_END, Event, WordReader, read_words
from tests.samples import lines
from tests.text.test_languages import TEXTS


def expected(text: str, code: str) -> list[Event]:
    """Return the words by definition: `split`, line by line."""
    parts = text.split("\n")
    if parts[-1] == "":
        parts.pop()
    return [event for line in parts for event in (*language(code).split(line), LINE_END)]  # type: ignore[misc]


def cut(data: bytes, ends: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(end % (len(data) + 1) for end in ends)})
    return [data[a:b] for a, b in pairwise(places)]


texts = st.lists(st.sampled_from([*TEXTS, "\n", "\r\n", " \t ", "\n\n"]), max_size=6).map("".join)


@pytest.mark.parametrize("code", ["de", "en", "zh", "ar"])
@given(text=texts, ends=st.lists(st.integers(0, 2000), max_size=30))
@settings(max_examples=150, deadline=None)
def test_any_chunks_of_bytes(code: str, text: str, ends: list[int]) -> None:
    text = text.replace("\ud800", "")  # half a surrogate pair has no bytes
    chunks = cut(text.encode("utf-8"), ends)
    assert list(read_words(chunks, language(code))) == expected(text, code)


@pytest.mark.parametrize("code", ["de", "zh"])
@given(text=texts, ends=st.lists(st.integers(0, 2000), max_size=30))
@settings(max_examples=100, deadline=None)
def test_any_chunks_of_text(code: str, text: str, ends: list[int]) -> None:
    places = sorted({0, len(text), *(end % (len(text) + 1) for end in ends)})
    chunks = [text[a:b] for a, b in pairwise(places)] + [""]
    assert list(read_words(chunks, language(code))) == expected(text, code)


@given(data=st.binary(max_size=80), ends=st.lists(st.integers(0, 80), max_size=10))
@settings(max_examples=300, deadline=None)
def test_any_bytes_at_all(data: bytes, ends: list[int]) -> None:
    text = data.decode("utf-8", "replace")
    assert list(read_words(cut(data, ends), language("de"))) == expected(text, "de")


@pytest.mark.parametrize(
    ("code", "name"),
    [("de", "deen-eval/mixed-test.de"), ("en", "deen-eval/mixed-test.en"), ("zh", "zhen-eval/mixed-test.zh")],
)
def test_real_text_byte_by_byte(code: str, name: str) -> None:
    text = "\n".join(lines(name, 60))
    data = text.encode("utf-8")
    assert list(read_words([bytes([byte]) for byte in data], language(code))) == expected(text, code)


def test_a_word_is_finished_at_its_white_space() -> None:
    reader = WordReader(language("de"))
    assert reader.feed("Haus") == []
    assert reader.feed(" ") == ["Haus"]
    assert reader.feed("tür\n") == ["tür", LINE_END]


def test_lines_are_counted_as_files_count_them() -> None:
    def ends(text: str) -> int:
        return list(read_words([text], language("de"))).count(LINE_END)

    assert [ends(text) for text in ("", "a", "a\n", "a\nb", "\n\n", "a\r\n\r\n", "a\rb", "  ")] == [
        *(0, 1, 1, 2, 2, 2, 1, 1)
    ]


def test_a_broken_character_is_replaced_when_text_follows_or_the_stream_ends() -> None:
    reader = WordReader(language("de"))
    assert reader.feed(b"\xe4\xb8") == []
    assert reader.feed("a ") == ["\ufffda"]
    reader.feed(b"\xc3")
    assert reader.close() == ["\ufffd", LINE_END]
    assert reader.close() == []


def test_only_bytes_that_are_not_utf8_count_as_broken() -> None:
    reader = WordReader(language("de"))
    text = "ein \ufffd Wort "
    for chunk in (text, text.encode(), text.encode()[:5], text.encode()[5:]):
        reader.feed(chunk)
    assert not reader.broken
    reader.feed("\ufffd ".encode() + b"sch\xf6n ")
    assert reader.broken


def test_a_very_long_word_and_controls_lose_nothing() -> None:
    events = list(read_words([b"x" * 9_999 + b"\x00y \x07 z"], language("de")))
    assert "".join(str(event) for event in events if event is not LINE_END) == "x" * 9_999 + "yz"
    assert events[-2:] == ["z", LINE_END]


def test_a_reader_can_be_copied_inside_a_character() -> None:
    reader = WordReader(language("zh"))
    reader.feed("与此同时".encode()[:7])
    twin = copy.deepcopy(reader)
    rest = "与此同时".encode()[7:]
    assert reader.feed(rest) + reader.close() == twin.feed(rest) + twin.close() == ["与此同时", LINE_END]


def test_many_lines_in_one_chunk_take_linear_time() -> None:
    text = "ein Wort\n" * 100_000
    assert sum(event is LINE_END for event in read_words([text], language("de"))) == 100_000
