"""Codes, splitting and joining. Text that arrives letter by letter gives the words of the whole sentence."""

from __future__ import annotations

import codecs
import copy
import subprocess
import sys
import unicodedata
from itertools import pairwise
from pathlib import Path

import pytest
import sacrebleu
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stacl.support.errors import UserError
from stacl.text import splitters
from stacl.text.characters import clean
from stacl.text.languages import language
from stacl.text.splitters import LONGEST_WORD
from tests.samples import CORPORA, SAMPLE, lines

TEXTS = [
    "Der Bundestag tagt am 3. Oktober, z. B. über Wärmepumpen – heute schon?",
    "It’s the U.S. team’s 1,000th goal; \u201cwell done\u201d, he said.",
    "他在学习Python3.5，每天 2 小时。“真的吗？”她问——是的……",
    "发展中国家的正则表达式与此同时祝你好运",
    "👩\u200d👩\u200d👧 familie 🏴\U000e0067\U000e0062 e\u0301te\u0301 re\u0301sume\u0301",
    "שלום עולם مرحبا بالعالم \u200fסוף",
    "か\u3099き、こんにちは 한국어 １２３ＡＢＣ",
    "a\u00a0b\u3000c\td\u2028e\u200bf\xadg\x00h\x93i\ud800j \ufeff \u200e",
    "〈x〉\u2329y\u232a \uf900\ufa0e 𠀀𠀁 々〇",
]
anything = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(sorted(set("".join(TEXTS)))),
        st.sampled_from("的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动"),
    ),
    max_size=60,
)


def chunked(text: str, cuts: list[int]) -> list[str]:
    ends = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    return [text[a:b] for a, b in pairwise(ends)] or [""]


def live(code: str, chunks: list[str]) -> list[str]:
    splitter = language(code).splitter()
    words = [word for chunk in chunks for word in splitter.feed(chunk)]
    return words + splitter.close()


@pytest.mark.parametrize(
    ("written", "code"),
    [
        *[(name, "de") for name in ("de", "deu", "ger", "de-DE", "de_AT", "German", "Deutsch", " DE ", "deu_Latn")],
        *[(name, "zh") for name in ("zh", "zh-CN", "zh_TW", "zho_Hans", "cmn", "chi", "Chinese", "zh-Hant-HK")],
        *[(name, "en") for name in ("en", "eng_Latn", "en-GB", "English", "en_US.UTF-8")],
        *[("nl", "nl"), ("gsw", "gsw"), ("sr-Latn", "sr"), ("art", "art"), ("xx", "xx")],
        *[(name, "bg") for name in ("bul", "bg_BG", "Bulgarian")],
        *[("Mandarin", "zh"), ("Swiss German", "gsw"), ("Français", "fr"), ("arb", "ar"), ("yue", "yue")],
    ],
)
def test_codes(written: str, code: str) -> None:
    assert language(written).code == code
    assert language(written).splits_at_spaces == (code != "zh")


@pytest.mark.parametrize("rubbish", ["", "germann", "d", "12", "de/en", "klingonisch!", "de--en", "German English"])
def test_nonsense_is_not_a_language(rubbish: str) -> None:
    with pytest.raises(UserError, match="not a language"):
        language(rubbish)


def test_a_near_miss_gets_a_suggestion() -> None:
    with pytest.raises(UserError, match="did you mean german"):
        language("germann")


@pytest.mark.parametrize("code", ["de", "zh"])
@pytest.mark.parametrize("text", TEXTS)
def test_letter_by_letter_equals_whole(code: str, text: str) -> None:
    assert live(code, list(text)) == language(code).split(text)


@pytest.mark.parametrize("code", ["de", "zh"])
@given(text=anything, cuts=st.lists(st.integers(0, 60), max_size=12))
@example(text="与此同时", cuts=[1, 2, 3])
@example(text="ab" * LONGEST_WORD, cuts=[1, LONGEST_WORD, LONGEST_WORD + 1])
@settings(max_examples=300, deadline=None)
def test_any_chunking_equals_whole(code: str, text: str, cuts: list[int]) -> None:
    assert live(code, chunked(text, cuts)) == language(code).split(text)


@pytest.mark.parametrize("code", ["de", "zh"])
@given(text=anything)
@settings(max_examples=300, deadline=None)
def test_words_are_clean_and_nothing_visible_is_lost(code: str, text: str) -> None:
    words = language(code).split(text)
    assert all(word and not any(c.isspace() for c in word) for word in words)
    assert all(clean(word) == word and unicodedata.is_normalized("NFC", word) for word in words)
    expected = unicodedata.normalize("NFD", "".join(clean(text).split()))
    assert unicodedata.normalize("NFD", "".join(words)) == expected
    "".join(words).encode("utf-8")


@given(text=anything)
@settings(max_examples=200, deadline=None)
def test_words_one_by_one_equal_the_sentence(text: str) -> None:
    german = language("de")
    words = german.split(text)
    assert [part for word in words for part in german.split(word)] == words
    assert german.split(german.join(words)) == words


def test_composition_never_moves_a_character_into_another_class() -> None:
    """Chinese is split before composition, so composition must not change the class of a character."""

    def kind(character: str) -> str | None:
        match = splitters._RUNS.match(character)
        return match.lastgroup if match else None

    for point in range(sys.maxunicode + 1):
        shown = clean(chr(point))
        composed = unicodedata.normalize("NFC", shown)
        if shown and shown != composed:
            assert {kind(c) for c in composed} == {kind(shown)}, hex(point)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("他在学习Python3.5。", "他|在|学习|Python3.5|。"),
        ("iPhone 7“真机模型”图片", "iPhone|7|“|真|机|模型|”|图片"),
        ("与此同时，祝你好运", "与此同时|，|祝你好运"),
        ("30%的人，约3.5亿！", "30%|的|人|，|约|3.5|亿|！"),
        ("１２３ＡＢＣ，好", "123ABC|，|好"),
        ("  \u3000 ", ""),
    ],
)
def test_chinese_words(text: str, words: str) -> None:
    assert language("zh").split(text) == [word for word in words.split("|") if word]


@pytest.mark.parametrize(
    "text",
    [
        "他在学习Python3.5。",
        "她们是“终极五人组”(Final Five)，因为 Marta 来了。".replace(" Marta ", "Marta"),
        "iPhone 7真机，价格100元",
        "你好,世界!",
    ],
)
def test_joined_chinese_reads_as_written(text: str) -> None:
    chinese = language("zh")
    assert chinese.join(chinese.split(text)) == text


def test_gaps_of_live_output_give_the_joined_sentence() -> None:
    for code in ("de", "zh"):
        tongue = language(code)
        for text in TEXTS:
            shown, previous = "", None
            for word in tongue.split(text):
                shown += tongue.gap(previous, word) + word
                previous = word
            assert shown == tongue.join(tongue.split(text))


def test_marks_keep_their_width_and_letters_and_digits_become_narrow() -> None:
    assert language("zh").join(language("zh").split("（A）(A)，,：:")) == "（A）(A)，,：:"
    assert language("de").split("ﬁn ½ Ａ") == ["fin", "½", "A"]
    assert language("zh").join(language("zh").split("他在ＩＢＭ工作，２０１９年。")) == "他在IBM工作，2019年。"
    assert language("de").split("Wir ﬁnden das Büro oﬀen.") == ["Wir", "finden", "das", "Büro", "offen."]
    assert language("zh").split("增长了３．５％。") == ["增长", "了", "3.5%", "。"]


def test_invisible_characters_are_dropped_and_windows_quotes_are_decoded() -> None:
    assert language("de").split("Wör\xadter\u200b\ufff9 \x84so\x93 e\u0301") == ["Wörter", "„so“", "é"]


def test_an_overlong_word_comes_in_pieces_without_loss() -> None:
    for code in ("de", "zh"):
        words = live(code, ["x"] * 10_000)
        assert [len(word) for word in words[:-1]] == [LONGEST_WORD] * (10_000 // LONGEST_WORD)
        assert "".join(words) == "x" * 10_000


def test_a_stream_without_spaces_is_not_held_back() -> None:
    splitter = language("zh").splitter()
    out = "".join(word for _ in range(500) for word in splitter.feed("发展中国家的正则表达式"))
    assert len(out) >= 500 * 11 - splitters._LARGEST_WINDOW


def test_a_splitter_can_be_copied_and_is_new_after_close() -> None:
    for code in ("de", "zh"):
        splitter = language(code).splitter()
        splitter.feed("正则表")
        twin = copy.deepcopy(splitter)
        assert splitter.feed("达式") + splitter.close() == twin.feed("达式") + twin.close()
        assert splitter.feed("好 ") == ["好"]


def test_a_missing_segmenter_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    splitters._jieba.cache_clear()
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(UserError, match="pip install"):
        language("zh").split("好")
    splitters._jieba.cache_clear()


def test_other_languages_need_no_segmenter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rjieba", None)
    assert language("de").split("ohne Segmentierer") == ["ohne", "Segmentierer"]


@pytest.mark.parametrize("root", [SAMPLE, pytest.param(CORPORA, marks=pytest.mark.corpora)], ids=["sample", "corpora"])
def test_real_chinese_is_close_to_the_segmentation_of_whole_lines(root: Path) -> None:
    """The figures of the module's docstring on a smaller sample, with a tolerance."""
    import rjieba

    differing, looked_ahead, words = 0, 0, 0
    sample = lines("zhen-large/train.zh", 2000, step=1 if root == SAMPLE else 100, root=root)
    for line in sample:
        runs = [match[0] for match in splitters._RUNS.finditer(clean(line)) if match["han"]]
        differing += any(language("zh").split(run) != rjieba.cut(run, False) for run in runs)
        for run in runs:
            splitter, said = language("zh").splitter(), 0
            for heard, character in enumerate(run, start=1):
                for word in splitter.feed(character):
                    said += len(word)
                    looked_ahead += heard - said
                    words += 1
    assert differing / len(sample) < 0.015
    assert looked_ahead / words < 2.6


@pytest.mark.parametrize(
    ("code", "name"),
    [("de", "deen-eval/mixed-test.de"), ("en", "deen-eval/mixed-test.en"), ("zh", "zhen-small/devtest.zh")],
)
def test_real_lines_letter_by_letter(code: str, name: str) -> None:
    for line in lines(name, 200):
        assert live(code, list(line)) == language(code).split(line)


@pytest.mark.parametrize(("code", "tokenizer"), [("de", "13a"), ("zh", "zh"), ("ko", "13a"), ("ja", "13a")])
def test_bleu_of_every_language_can_be_computed(code: str, tokenizer: str) -> None:
    """sacreBLEU's default tokenizers for Korean and Japanese need packages that are not installed."""
    assert language(code).tokenizer == tokenizer
    assert sacrebleu.BLEU(tokenize=language(code).tokenizer).corpus_score(["a b c d"], [["a b c d"]]).score > 99


@pytest.mark.parametrize(("code", "name"), [("de", "German"), ("gsw", "Swiss German"), ("xx", "xx")])
def test_names(code: str, name: str) -> None:
    assert language(code).name == name


def test_common_codes_need_no_look_up() -> None:
    """Importing langcodes takes 19 ms, and its names 40 ms more. A live translation starts without them."""
    program = "import sys, stacl.text.languages as l; l.language('de'); print('langcodes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("fact", "codes"),
    [
        ("writes_spaces", "ar de ko xx"),
        ("has_segmenter", "zh"),
        ("splits_at_spaces", "ar de ja ko th xx"),
        ("marks_are_words", "zh"),
        ("has_case", "de xx"),
        ("writes_han", "ja zh"),
        ("ends_sentences_with_ideographic_stop", "ja zh"),
        ("counts_in_ten_thousands", "ja ko zh"),
        ("needs_segmented_text", "ja th"),
    ],
)
def test_facts(fact: str, codes: str) -> None:
    assert [
        code for code in ("ar", "de", "ja", "ko", "th", "xx", "zh") if getattr(language(code), fact)
    ] == codes.split()


def test_encodings_to_suggest() -> None:
    for code in ("de", "ja", "ko", "xx", "zh"):
        codecs.lookup(language(code).fallback_encoding)
    assert language("zh").fallback_encoding == "gb18030"
