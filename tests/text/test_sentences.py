"""Sentence segmentation of a stream: correct ends, no word lost or duplicated."""

from __future__ import annotations

import time
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stacl.support.errors import UserError
from stacl.text.languages import language
from stacl.text.sentences import SENTENCE_END, Item, Segmenter
from stacl.text.source import SourceText
from tests.samples import SAMPLE, corpora, lines


def sentences(code: str, words: list[str], **options: int | str) -> list[str]:
    segmenter = Segmenter(language(code), **options)  # type: ignore[arg-type]
    items = [item for word in words for item in segmenter.feed(word)] + segmenter.end()
    return " ".join(str_of(item) for item in items).split("|")


def str_of(item: Item) -> str:
    return "|" if item is SENTENCE_END else str(item)


def cut(code: str, text: str, **options: int | str) -> str:
    """Return the text with ` | ` at sentence ends."""
    found = sentences(code, language(code).split(text), **options)
    return " | ".join(sentence.strip() for sentence in found if sentence.strip())


GERMAN = [
    "Er kam spät. | Wir gingen.",
    "<i>Er kam spät.</i> | <b> Wir gingen.</b> | Äpfel usw. </i> | Die Liste ist lang.",
    "Das gilt z. B. für Hunde. | Katzen nicht.",
    "Das gilt z.B. für Hunde, d. h. für alle. | Gut.",
    "Dr. Meier und Prof. Dr. Schulz kommen bzw. gehen. | Ende.",
    "Ich habe Mrs. Jones und Mr. Smith getroffen. | Ende.",
    "Äpfel, Birnen usw. | Die Liste ist lang.",
    "Äpfel, Birnen usw. sind Obst.",
    "Haus Nr. 5 steht leer. | Haus Nr. 7 auch.",
    "Am 3. Oktober ist Feiertag. | Am 24. Dezember nicht.",
    "Das war 1990. | Heute ist alles anders.",
    "Es kostet 3.5 oder 1.000 Euro. | Teuer!",
    "Karl V. war Kaiser, Ludwig XIV. König.",
    "„Kommst du?“ fragte sie. | „Nein.“ | Er blieb.",
    "Er sagte: „Ich komme.“ | Dann kam er (spät.) | Sie lachte.",
    "Na ja ... das geht. | Wirklich?! | Ja!",
    "J. S. Bach und u. a. auch Händel spielten.",
    "Das ist eine neue Art. | Man staunt.",
    "Ein Mann schläft auf dem Sofa . | Er träumt .",
    "Im 19. Jh. gab es das nicht. | Es kam spät.",
    "Am 24.12. ist Heiligabend und am 1.1. Neujahr. | Wir feiern.",
    "Das war am 24.12. | Wir feierten.",
    "Er wohnt Hauptstr. 5 in Berlin. | Sie auch.",
    "Sie ist Dipl.-Ing. und wohnt hier. | Er nicht.",
    "Mo. bis Fr. ist offen. | Sa. ist zu.",
    "Siehe bzgl. der Frage auch lt. Polizei die Antwort. | Gut.",
    "Das ist Plan B. | Wir haben keinen anderen.",
    "Berlin ist groß.[1] | Die Stadt ist alt.[2][13] | Sie liegt an der Spree.[3]",
]
ENGLISH = [
    "Mr. Smith met Dr. Jones. | They talked.",
    "The U.S. Senate voted. | It passed.",
    "He lives in the U.S. | He likes it.",
    "Some animals, e.g. dogs, bark. | Others, i.e. cats, do not.",
    "J. K. Rowling wrote it at 9 a.m. on Monday. | Good.",
    "So do I. | But you do not. | What about Plan B? | Neither do I. | The end.",
    '"Really?" he asked. | "Yes." | She nodded.',
    "It cost $3.50. | That is 1,000 too much!",
    "No. 5 is alive. | No. | It is not.",
    "No. | I don't. | He said no. | I'm sure. | Figure No. IV is lost.",
    "Wait... what? | Yes... | No!",
    "We sell nuts, bolts, etc. | We also buy them.",
    "See (Fig. 3). | It is clear.",
    "See Fig. 3. | It is clear.",
]
CHINESE = [
    "他来了。|我们走吧！|真的吗？|好",
    "他说：“好。”|我们走吧。",
    "“我来了。|你在哪里？”|没有人。",
    "价格是3.5元。|Python3.5很好。",
    "太好了！|！！我们走。",
    "他看了《为什么？》这本书。|我也看了【真的！】。",
    "他说：“他告诉我‘我要走了。’”|然后他走了。",
    "‘我不知道。’|他走了。",
    "有三点：1.加强管理；2.提高质量；3.降低成本。|完了。",
    '她问:"你去吗?"|我说:"不去!"|然后我走了.',
    "我……我不知道。|真的吗｡|真的。",
]


@pytest.mark.parametrize("text", GERMAN)
def test_german(text: str) -> None:
    assert cut("de", text.replace(" |", "")) == text


@pytest.mark.parametrize("text", ENGLISH)
def test_english(text: str) -> None:
    assert cut("en", text.replace(" |", "")) == text


@pytest.mark.parametrize("text", CHINESE)
def test_chinese(text: str) -> None:
    assert cut("zh", text.replace("|", "")).replace(" ", "") == text


def test_the_end_comes_with_the_last_word() -> None:
    """An ordinary full stop needs no look-ahead and adds no delay."""
    for code, words in (("de", ["Er", "kam."]), ("en", ["He", "came!"]), ("zh", ["他", "来", "了", "。"])):
        segmenter = Segmenter(language(code))
        assert [segmenter.feed(word) for word in words][-1] == [words[-1], SENTENCE_END]


def test_in_doubt_the_end_comes_before_the_next_word_and_no_word_is_held_back() -> None:
    segmenter = Segmenter(language("de"))
    assert segmenter.feed("Obst") == ["Obst"]
    assert segmenter.feed("usw.") == ["usw."]
    assert segmenter.feed("Er.") == [SENTENCE_END, "Er.", SENTENCE_END]


def test_long_sentences_are_cut_at_a_clause_and_at_the_limit() -> None:
    plain = ["wort"] * 40
    assert [len(s.split()) for s in sentences("de", plain, max_words=16)] == [16, 16, 8, 0]
    clause = ["wort"] * 11 + ["wort,"] + ["wort"] * 20
    assert [len(s.split()) for s in sentences("de", clause, max_words=16)] == [12, 16, 4, 0]
    semicolon = ["wort"] * 5 + ["wort;"] + ["wort"] * 4
    assert [len(s.split()) for s in sentences("de", semicolon, max_words=16)] == [6, 4, 0]


def test_an_explicit_end() -> None:
    segmenter = Segmenter(language("de"), end_mark="</s>")
    assert segmenter.feed("Hallo") == ["Hallo"]
    assert segmenter.feed("</s>") == [SENTENCE_END]
    assert segmenter.feed("</s>") == segmenter.end() == []
    segmenter.feed("usw.")
    assert segmenter.end() == [SENTENCE_END]
    assert segmenter.feed("Der") == ["Der"]


def test_an_invalid_limit() -> None:
    with pytest.raises(UserError, match="at least 2"):
        Segmenter(language("de"), max_words=1)


odd = st.sampled_from(
    [
        "Haus",
        "Haus.",
        "Dr.",
        "3.",
        "usw.",
        ".",
        "?",
        '"',
        "“",
        "”",
        "。",
        "...",
        "…",
        "Der",
        "der",
        "(",
        ")",
        ",",
        ";",
    ]
)


@pytest.mark.parametrize("code", ["de", "en", "zh", "tr"])
@given(words=st.lists(st.one_of(odd, st.text(min_size=1, max_size=5)), max_size=60), limit=st.integers(2, 20))
@settings(max_examples=150, deadline=None)
def test_words_are_neither_lost_nor_duplicated(code: str, words: list[str], limit: int) -> None:
    segmenter = Segmenter(language(code), max_words=limit)
    items = [item for word in words for item in segmenter.feed(word)] + segmenter.end()
    assert [item for item in items if item is not SENTENCE_END] == words
    lengths, length = [], 0
    for item in items:
        length = 0 if item is SENTENCE_END else length + 1
        lengths.append(length)
        assert length <= limit
    # The first item is a word, the last is an end, and two ends are never adjacent.
    assert all(not (a == b == 0) for a, b in pairwise(lengths))
    assert not items or (items[0] is not SENTENCE_END and items[-1] is SENTENCE_END)


def test_memory_stays_flat_in_an_endless_stream() -> None:
    segmenter = Segmenter(language("zh"))
    words = ["“", "（", '"', "好", "，"] * 200
    for word in words:
        segmenter.feed(word)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(30):
        for word in words:
            segmenter.feed(word)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000


@pytest.mark.parametrize(
    ("code", "name", "precision", "recall", "marked_recall"),
    [
        ("de", "deen-large/train.de", 0.90, 0.90, 0.97),
        ("en", "deen-large/train.en", 0.90, 0.90, 0.97),
        ("zh", "zhen-large/train.zh", 0.90, 0.90, 0.97),
        pytest.param("de", "deen-eval/newstest2013.de", 0.95, 0.93, 0.99, marks=pytest.mark.corpora),
        pytest.param("en", "deen-eval/newstest2013.en", 0.96, 0.93, 0.99, marks=pytest.mark.corpora),
        pytest.param("zh", "zhen-eval/newstest2017.zh", 0.94, 0.93, 0.98, marks=pytest.mark.corpora),
    ],
)
def test_real_lines_as_one_stream(code: str, name: str, precision: float, recall: float, marked_recall: float) -> None:
    """All lines as one stream: sentence ends against line ends. The module's docstring has the figures."""
    tongue = language(code)
    segmenter = Segmenter(tongue)
    ends, cuts, marked, count = set(), set(), set(), 0
    for line in lines(name, 4000, root=corpora() if "newstest" in name else SAMPLE):
        words = tongue.split(line)
        for word in words:
            items = segmenter.feed(word)
            cuts |= {count} if items[0] is SENTENCE_END else set()
            count += 1
            cuts |= {count} if items[-1] is SENTENCE_END else set()
        ends.add(count)
        if any(mark in words[-1][-3:] for mark in ".!?。！？…"):
            marked.add(count)
    assert len(cuts & ends) / len(cuts) > precision
    assert len(cuts & ends) / len(ends) > recall
    assert len(cuts & marked) / len(marked) > marked_recall


def test_thousands_of_dots_are_fast() -> None:
    """A slow regular expression would let one client block all others."""
    began = time.process_time()
    source = SourceText(language("de"), segment=True)
    for word in ("." * 2040 + "x", "!?" * 1000 + "a,") * 5:
        assert source.feed(f"Ja {word} ") == ["Ja", word]
    assert time.process_time() - began < 0.3


def test_words_split_by_the_caller_are_cleaned() -> None:
    """Decomposed letters, an empty string from `split(" ")`, and a word that is still open."""
    source = SourceText(language("de"), segment=False)
    assert source.feed("Die") + source.word("Tu\u0308r") == ["Die", "Tür"]
    assert source.word("") + source.word(" \n") + source.word("\u200b") == []
    assert source.word("ist zu.") == ["ist", "zu."]
    chinese = SourceText(language("zh"), segment=False)
    assert chinese.word("我们在") == ["我们在"]  # the segmentation of the caller is kept


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("真的吗？！我们走吧", "真的 吗 ？|我们 走 吧"),
        ("太好了！！！", "太好了 ！"),
        ("你好。”", "你好 。"),
        ("你好。“好。”他说。😀", "你好 。|“ 好 。 ”|他 说 。|😀"),
        ("！！！", "！ ！ ！"),  # a line with only marks is kept
    ],
)
def test_marks_do_not_form_a_sentence(text: str, expected: str) -> None:
    """Marks after a sentence that belong to it are dropped."""
    source = SourceText(language("zh"), segment=True)
    for _ in range(2):  # the next line starts fresh
        items = [item for part in text for item in source.feed(part)] + source.feed("\n")
        joined = " ".join(str_of(item) for item in items)
        assert [part.strip() for part in joined.split("|") if part.strip()] == expected.split("|")


def test_opening_marks_wait_for_the_first_word() -> None:
    source = SourceText(language("en"), segment=True)
    assert source.feed("Yes. - ") == ["Yes.", SENTENCE_END]
    assert source.feed("No ") == ["-", "No"]
    endless = source.feed("way. " + "- " * 1000)
    assert endless[:2] == ["way.", SENTENCE_END]
    endless += source.feed("Why ")
    assert endless[-1] == "Why"
    assert endless.count("-") == 1000  # all are returned


def test_a_whole_chinese_text_is_split() -> None:
    assert SourceText(language("zh"), segment=True).word("好。走吧。") == [
        "好",
        "。",
        SENTENCE_END,
        "走",
        "吧",
        "。",
        SENTENCE_END,
    ]


@pytest.mark.parametrize("segment", [True, False])
def test_an_end_ends_the_open_word_too(segment: bool) -> None:
    source = SourceText(language("de"), segment)
    for text in ("Ein Mann schläft", "Der Hund bellt"):
        assert source.feed(text) + source.end() == [*text.split(), SENTENCE_END]


def test_a_stream_of_tags_is_split_too() -> None:
    assert cut("de", "<br> " * 7, max_words=5) == "<br> <br> <br> <br> <br> | <br> <br>"


def test_marks_inside_a_tag_do_not_end_a_sentence() -> None:
    assert cut("de", 'Das <a title="Ja. Nein? Nie." href=x>ist</a> gut.</p> Wirklich.') == (
        'Das <a title="Ja. Nein? Nie." href=x>ist</a> gut.</p> | Wirklich.'
    )


def test_a_false_tag_ends_with_the_next_word() -> None:
    assert cut("de", "Es ist 3 <a. Und dann <p gut. Nein.") == "Es ist 3 <a. | Und dann <p gut. | Nein."


def test_an_open_quote_in_a_tag_does_not_hide_the_stream() -> None:
    assert "gut. | Ende." in cut("de", '<a title="' + "Das ist gut. " * 200 + "Ende.")


def test_the_next_tag_ends_an_open_quote() -> None:
    assert cut("de", '<a title="Ja. <b>Gut.</b> Nein.') == '<a title="Ja. <b>Gut.</b> | Nein.'
