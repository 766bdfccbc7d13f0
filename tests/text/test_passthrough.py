"""Which parts of a sentence the model gets, and which are copied."""

from __future__ import annotations

import re

import pytest

import stacl
from stacl.decoding.options import Decoding
from stacl.support.errors import UserError
from stacl.text.languages import language
from stacl.text.passthrough import SourceSentence


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("Die Łódź liegt in привет bei 你好", "Die liegt in bei"),  # letters that are not in the vocabulary
        (
            '(https://a.org/b?c=1) "ftp://a.org" :https://b.de a.org/b /usr/bin/x C:\\X a/b und/oder 3/4',
            "a/b und/oder 3/4",
        ),
        ("00:00:01,000 --> 00:00:03,500", ""),
        ("1\ufe0f\u20e3 Ein Mann um 12:30", "Ein Mann um 12:30"),
        ("- Ein Mann - und -", "Ein Mann - und -"),
        ("Gut :-) schade :( sehr ;P <3 xD und 3:3 (so) 8) a<3", "Gut schade sehr und 3:3 (so) 8) a<3"),
        ("Schreib @max, an_alle bericht_2024.pdf (foto.JPG) bis 3.py oder A.Z.", "Schreib bis oder A.Z."),
        ("Der Server 192.168.0.1 kostet 1.000.000.000 Euro.", "Der Server kostet 1.000.000.000 Euro."),
        ("<i>Ein</i> Mann<br/> <b> geht </B> <EM>weg.</EM> a<b", "Ein Mann geht weg. a<b"),
    ],
)
def test_unknown_words_are_not_given_to_the_model(text: str, given: str) -> None:
    vocabulary = stacl.load("de-en").source_pieces
    sentence = SourceSentence(vocabulary, language("de"))
    assert " ".join(filter(None, map(sentence.add, text.split()))) == given
    assert sentence.words == text.split()


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("ICH HABE KEINE ZEIT!", "Ich habe keine zeit!"),
        ("Die NATO und die USA sagen NEIN.", "Die NATO und die USA sagen NEIN."),
        ("WAS MACHST DU DA?", "Was machst du da?"),
        ("HILFE!", "Hilfe!"),
        ("WHO warnt", "WHO warnt"),
        ("WHO?", "WHO?"),
        ("IBM USA", "IBM USA"),
        ("SPD, CDU, FDP und EU stimmten zu.", "SPD, CDU, FDP und EU stimmten zu."),
        ("A US soldier, a UN report", "A US soldier, a UN report"),  # a single letter is not an all-caps word
        ("A UN report", "A UN report"),
        ("A CEO was fired.", "A CEO was fired."),
        ("I AM SO TIRED!", "I am so tired!"),
    ],
)
def test_all_caps_words_are_normalised(text: str, given: str) -> None:
    english = text.startswith(("A ", "I "))
    translator = stacl.load("en-de" if english else "de-en")
    sentence = SourceSentence(translator.source_pieces, translator.source_language)
    assert " ".join(map(sentence.add, text.split())) == given
    assert sentence.words == text.split()


@pytest.mark.parametrize("text", ["Danke 😀", "Danke😀", "♪ Wir singen ein Lied ♪"])
def test_a_copied_last_word_stays_last(text: str) -> None:
    """The number of words in the translation does not matter."""
    translator = stacl.load("de-en")
    session = translator.stream("wait-k:1")
    for word in text.split():
        session.read(word)
    session.close()
    *_, last = session.trace.target
    assert last == text[-1]
    assert session.trace.delays[-1] == len(text.split())
    (batched,) = translator.translate_lines([text], "wait-k:1")
    assert (batched.target, batched.delays) == (session.trace.target, session.trace.delays)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("de-en", "Schreib mir an anna@example.org."),
        ("en-zh", "Do you know www.example.org?"),
        ("de-en", "anna@example.org."),
    ],
)
@pytest.mark.parametrize("beam", [1, 5])
def test_a_sentence_ends_once(model: str, text: str, beam: int) -> None:
    """The model may write an end mark or not. It cannot see the mark after the address."""
    translator = stacl.load(model)
    (batched,) = translator.translate_lines([text], "wait-k:3", decoding=Decoding(beam=beam))
    assert sum(word.endswith((".", "?", "。", "？")) for word in batched.target) == 1
    assert batched.target[-1].startswith(text.split()[-1][:-1])
    session = translator.stream("wait-k:3", decoding=Decoding(beam=beam))
    for word in translator.source_language.split(text):
        session.read(word)
    session.close()
    assert session.trace.target == batched.target


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("de-en", "Das <b> ist <i>sehr</i> gut. </b>"),
        ("de-en", '<font size=4 color="#ff0000">Das</font> <a title="Ja. Nein?" href=\'https://a.de/b\'>ist gut.</a>'),
        ("zh-en", "这是<i>很好</i>的。"),
        ("zh-en", '<font color="red">这是很好的。</font>'),
    ],
)
def test_tags_do_not_change_the_translation(model: str, text: str) -> None:
    translator = stacl.load(model)
    plain = re.sub("<[^<>]*>", "", text)
    with_tags, without = translator.translate_lines([text, plain], "wait-k:3")
    assert with_tags.target == without.target
    session = translator.stream("wait-k:3")
    for word in translator.source_language.split(text):
        session.read(word)
    session.close()
    assert (session.trace.target, session.trace.delays) == (with_tags.target, with_tags.delays)


def test_a_line_with_only_a_tag_is_copied() -> None:
    (trace,) = stacl.load("de-en").translate_lines(["<br>"], "wait-k:3")
    assert trace.target == ("<br>",)


def test_a_string_is_not_a_list_of_sentences() -> None:
    with pytest.raises(UserError, match="takes a list of sentences"):
        stacl.load("de-en").translate_lines("Hund")
