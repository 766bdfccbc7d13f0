"""Subword pieces: word by word equals whole sentences, and every character is restored."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stacl.support.errors import UserError
from stacl.text.languages import language
from stacl.text.subwords import BEGIN, END, PAD, SMALLEST_SIZE, SPACE, UNKNOWN, Subwords, units_of
from tests.helpers import GERMAN
from tests.samples import corpora, lines

SENTENCES = [line.split() for line in GERMAN]
SMALL = Subwords.train(SENTENCES, 360)
ODD = [
    "😀",
    "👩‍👩‍👧",
    "🇩🇪",
    "שלום",
    "مرحبا",
    "中文",
    "</s>",
    "<s>",
    "<unk>",
    "<pad>",
    "<0x41>",
    "a</s>b",
    "e\u0301",
]


WHOLE = ["deen-small de 5", "deen-small en 5", "zhen-small zh 5", "zhen-small en 5"]


@pytest.fixture(
    scope="module",
    params=[
        *("deen-large de", "deen-large en", "zhen-small zh", "zhen-small en"),
        *(pytest.param(name, marks=pytest.mark.corpora) for name in WHOLE),
    ],
)
def real(request: pytest.FixtureRequest) -> tuple[Subwords, list[list[str]]]:
    """A vocabulary learned from a third of the lines (of a sample, or of four thousand), and all lines as words."""
    folder, code, *step = request.param.split()
    source: dict[str, Any] = {"step": int(step[0]), "root": corpora()} if step else {}
    words = [language(code).split(line) for line in lines(f"{folder}/train.{code}", 4_000, **source)]
    return Subwords.train(words[::3], 3000 if step else 1200, coverage=0.9995 if code == "zh" else 1.0), words


def test_word_by_word_is_the_whole_sentence(real: tuple[Subwords, list[list[str]]]) -> None:
    """SPEC 1: the pieces of a prefix do not change when the sentence grows. SentencePiece splits the whole."""
    pieces, sentences = real
    for words in sentences:
        assert pieces.encode(words) == pieces._processor.encode(" ".join(words))


def test_real_words_are_restored(real: tuple[Subwords, list[list[str]]]) -> None:
    pieces, sentences = real
    for words in sentences:
        assert pieces.words(pieces.encode(words)) == words
    for word in {word for words in sentences for word in words}:
        encoded = pieces.encode_word(word)
        assert pieces.decode_word(encoded) == word
        # Only the last piece ends the word.
        assert pieces.ends_word[list(encoded)].tolist() == [False] * (len(encoded) - 1) + [True]


def test_frequent_words_are_one_piece(real: tuple[Subwords, list[list[str]]]) -> None:
    pieces, sentences = real
    counts = np.array([len(pieces.encode(words)) / len(words) for words in sentences])
    # A vocabulary from a few hundred lines has fewer whole words.
    assert 1 <= counts.mean() < (2 if len(sentences) > 2000 else 3)


@pytest.mark.parametrize("word", [*ODD, "x" * 1000])
def test_unseen_characters_are_kept(word: str) -> None:
    encoded = SMALL.encode_word(word)
    assert UNKNOWN not in encoded
    assert not {PAD, BEGIN, END} & set(encoded)
    assert SMALL.decode_word(encoded) == word
    assert SMALL.ends_word[list(encoded)].sum() == 1


def test_bytes_that_make_no_character_are_not_shown() -> None:
    def spelled(*values: int) -> str:
        return SMALL.decode_word([SMALL.pieces.index(f"<0x{value:02X}>") for value in values])

    assert spelled(0xF0, 0x9F, 0x98, 0x80) == "😀"
    assert spelled(0xF0, 0x9F) == ""
    assert spelled(0x0A) == ""  # a line feed would break the output lines


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"], exclude_characters="\ufffd"), min_size=1),
        min_size=1,
        max_size=5,
    )
)
def test_any_words_are_restored(words: list[str]) -> None:
    expected = [word.replace(SPACE, "_") for word in words]
    assert SMALL.words(SMALL.encode(words)) == expected


@pytest.mark.parametrize("word", [f"{SPACE}baba{SPACE}", SPACE, f"a{SPACE}b", SPACE * 3])
def test_the_white_space_symbol_in_a_text_does_not_end_a_word(word: str) -> None:
    encoded = SMALL.encode_word(word)
    assert SMALL.ends_word[list(encoded)].sum() == 1
    assert SMALL.decode_word(encoded) == word.replace(SPACE, "_")


def test_empty_text_has_no_words() -> None:
    assert SMALL.encode_word("") == ()
    assert SMALL.encode([]) == []
    assert SMALL.words([]) == []
    assert SMALL.decode_word(()) == ""


def test_pieces_after_the_last_whole_word_make_one_more() -> None:
    pieces = SMALL.encode(["Ein", "Gebäude"])
    assert SMALL.words(pieces[:-1])[0] == "Ein"
    assert "Gebäude".startswith(SMALL.words(pieces[:-1])[1])


def test_units() -> None:
    words = random.Random(1).choices([word for sentence in SENTENCES for word in sentence], k=30)
    pieces = np.array(SMALL.encode(words))
    found = units_of(pieces, SMALL.ends_word, "word")
    assert found.tolist() == [n for n, word in enumerate(words, start=1) for _ in SMALL.encode_word(word)]
    assert units_of(pieces, SMALL.ends_word, "piece").tolist() == list(range(1, len(pieces) + 1))
    for unit in ("word", "piece"):
        assert units_of(np.array([], dtype=np.int64), SMALL.ends_word, unit).tolist() == []


def test_training_is_deterministic() -> None:
    again = Subwords.train(iter(SENTENCES), 360)
    assert again.model == SMALL.model
    assert Subwords.train(SENTENCES, 380).model != SMALL.model


def test_special_pieces_have_fixed_numbers() -> None:
    special = [SMALL._processor.id_to_piece(piece) for piece in (PAD, UNKNOWN, BEGIN, END)]
    assert special == ["<pad>", "<unk>", "<s>", "</s>"]
    assert not SMALL.ends_word[[PAD, UNKNOWN, BEGIN, END]].any()
    assert len(SMALL) == len(SMALL.ends_word) == 360


def test_saved_and_loaded(tmp_path: Path) -> None:
    SMALL.save(tmp_path / "x.model")
    loaded = Subwords.load(tmp_path / "x.model")
    assert loaded.encode(ODD) == SMALL.encode(ODD)
    assert (loaded.ends_word == SMALL.ends_word).all()


@pytest.mark.parametrize("content", [b"no model", b"{}" * 1000, None])
def test_a_damaged_model_is_reported(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.model"
    path.write_bytes(SMALL.model[: len(SMALL.model) // 2] if content is None else content)
    with pytest.raises(UserError, match=rf"{path} is damaged or not a SentencePiece model"):
        Subwords.load(path)
    with pytest.raises(UserError, match="does not exist"):
        Subwords.load(tmp_path / "nothing.model")


def test_a_vocabulary_that_does_not_fit_the_text() -> None:
    with pytest.raises(UserError, match=f"at least {SMALLEST_SIZE}"):
        Subwords.train(SENTENCES, SMALLEST_SIZE - 1)
    with pytest.raises(UserError, match=r"too small for 5000 pieces; set text.vocabulary to at most \d+") as caught:
        Subwords.train(SENTENCES, 5000)
    most = int(str(caught.value).split()[-1])
    assert len(Subwords.train(SENTENCES, most)) == most
    with pytest.raises(UserError, match="could not learn"):
        Subwords.train([], 400)
    # No size would work.
    with pytest.raises(UserError, match=rf"too small: it gives 2\d\d pieces, and a vocabulary needs {SMALLEST_SIZE}"):
        Subwords.train([["ab", "ba"], ["abab"]], 400)


def test_long_strings_are_not_cached() -> None:
    subwords = Subwords.train(SENTENCES, SMALLEST_SIZE)
    before = subwords._cached.cache_info().currsize
    assert subwords.encode_word("🦀" * 200) == subwords._encode_word("🦀" * 200)
    assert subwords._cached.cache_info().currsize == before
