"""All inputs use the same text path: the words and sentences do not depend on how the text arrives."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stacl
from stacl.text.languages import language
from stacl.text.sentences import SENTENCE_END
from stacl.text.source import SourceText
from stacl.text.words import LINE_END

ALPHABET = st.sampled_from([*'aB. \n!?"…1', "。", "学", "\u200b", "Dr.", "é"])


def by_lines(code: str, chunks: Iterable[str | bytes]) -> list[object]:
    return list(SourceText(language(code), segment=True).lines(chunks))


@given(text=st.lists(ALPHABET).map("".join), size=st.integers(1, 5), code=st.sampled_from(["de", "en", "zh"]))
def test_chunks_do_not_matter(text: str, size: int, code: str) -> None:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    encoded = text.encode()
    in_bytes = [encoded[start : start + size] for start in range(0, len(encoded), size)]
    assert by_lines(code, [text]) == by_lines(code, pieces) == by_lines(code, in_bytes)


@given(text=st.lists(ALPHABET).map("".join))
def test_lines_adds_only_line_ends(text: str) -> None:
    fed, streamed = SourceText(language("de"), segment=True), SourceText(language("de"), segment=True)
    items = [item for item in streamed.lines([text]) if item is not LINE_END]
    expected = [*fed.feed(text), *fed.close()]
    while expected[-1:] == [SENTENCE_END] and len(expected) > len(items):  # `close` ends a sentence in any case
        expected.pop()
    assert items == expected


def test_stop_drops_an_unfinished_word() -> None:
    source = SourceText(language("de"), segment=True)
    assert source.feed("Ein Ma") == ["Ein"]
    assert source.stop() == [SENTENCE_END]


@pytest.mark.parametrize("policy", ["wait-k:2", "confidence:2-6"])
def test_sessions_and_the_command_translate_the_same(
    policy: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from stacl.__main__ import main

    translator = stacl.load("photos-de-en")
    text = "Ein Mann schläft. Zwei Hunde spielen im Garten!"
    with translator.stream(policy, segment=True) as session:
        fed = [word.text for part in text for word in session.feed(part)] + [word.text for word in session.close()]
    with translator.stream(policy, segment=True) as session:
        read = [written.text for word in text.split() for written in session.read(word)]
        read += [word.text for word in session.close()]
    assert fed == read
    assert translator.translate(text, policy, decoding=stacl.Decoding()) == " ".join(fed)
    file = tmp_path / "text.de"
    file.write_text(text, encoding="utf-8")
    assert main(["translate", "photos-de-en", "--policy", policy, "--beam", "1", str(file)]) == 0
    assert capfd.readouterr().out == " ".join(fed) + "\n"
