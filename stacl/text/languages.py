"""Languages: their codes and names, the facts about their writing, and how words are split and joined.

Every fact has its own name on `Language`, and a default for languages that no table here lists: written with spaces, in
letters with case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from stacl.support.errors import UserError, suggest
from stacl.text.characters import CHINESE_MARKS, HAN, clean
from stacl.text.splitters import ChineseSplitter, SpaceSplitter, Splitter, finish

# The canonical two-letter code, then what else people and data sets write. Others are accepted by their look.
_KNOWN = """
ar ara arabic|cs ces cze czech|da dan danish|de deu ger german deutsch|el ell gre greek|en eng english
es spa spanish|et est estonian|fa fas per persian|fi fin finnish|fr fra fre french|he heb hebrew|hi hin hindi
hu hun hungarian|id ind indonesian|it ita italian|ja jpn japanese|ko kor korean|nl nld dut dutch
no nor norwegian|pl pol polish|pt por portuguese|ro ron rum romanian|ru rus russian|sv swe swedish|th tha thai
tr tur turkish|uk ukr ukrainian|vi vie vietnamese|zh zho chi cmn chinese mandarin
"""
_CODES = {name: line.split()[0] for line in re.split(r"[|\n]", _KNOWN.strip()) for name in line.split()}
_NAMES = {
    line.split()[0]: next(name for name in line.split() if len(name) > 3).capitalize()
    for line in re.split(r"[|\n]", _KNOWN.strip())
}
_LOOKS_LIKE_A_CODE = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8})*")

_CHINESE = frozenset({"zh", "yue", "wuu", "lzh"})
_WITHOUT_SPACES = _CHINESE | {"bo", "ja", "km", "lo", "my", "th"}
_CASELESS_LETTERS = "am ar arb arz as bn ckb dv fa gu he hi ka kn ko ml mr ne or pa prs ps sa sd si ta te ti ug ur yi"
_WITHOUT_CASE = _WITHOUT_SPACES | frozenset(_CASELESS_LETTERS.split())
_FALLBACK_ENCODINGS = {"zh": "gb18030", "ja": "shift_jis", "ko": "cp949"}
_SEGMENTED = {"zh": ChineseSplitter}

_WHOLE_TEXT = re.compile(f"[{HAN}]{{13}}|[{HAN}][，。！？；：、][{HAN}]")
_WRITTEN_TOGETHER = re.compile(f"[{HAN}{CHINESE_MARKS}\u3040-\u30ff\uff00-\uffef]")


@dataclass(frozen=True)
class Language:
    """How one language is written."""

    code: str

    @property
    def name(self) -> str:
        """The English name, or the code where no name is known.

        >>> language("zh").name
        'Chinese'
        """
        return _NAMES.get(self.code, self.code)

    @property
    def tokenizer(self) -> str:
        """sacreBLEU's tokenizer for this language, among those that need no further package."""
        return "zh" if self.code == "zh" else "13a"

    @property
    def writes_spaces(self) -> bool:
        """Whether people write spaces between words."""
        return self.code not in _WITHOUT_SPACES

    @property
    def has_segmenter(self) -> bool:
        """Whether stacl segments its unspaced text into words."""
        return self.code in _SEGMENTED

    @property
    def needs_segmented_text(self) -> bool:
        """Whether it is written without spaces and has no segmenter, so its text must be segmented beforehand."""
        return not self.writes_spaces and not self.has_segmenter

    @property
    def splits_at_spaces(self) -> bool:
        """Whether words are separated by spaces in the text that stacl reads and writes."""
        return not self.has_segmenter

    @property
    def marks_are_words(self) -> bool:
        """Whether the splitter makes a punctuation mark a word of its own."""
        return self.has_segmenter

    @property
    def latency_unit(self) -> str:
        """What latency on the target side is counted in: "word", or "char" where word boundaries are disputed."""
        return "word" if self.splits_at_spaces else "char"

    @property
    def has_case(self) -> bool:
        """Whether its letters are upper or lower case."""
        return self.code not in _WITHOUT_CASE

    @property
    def writes_han(self) -> bool:
        """Whether it is written in Chinese characters, which are too many for a vocabulary to hold all."""
        return self.code in _CHINESE or self.code == "ja"

    @property
    def ends_sentences_with_ideographic_stop(self) -> bool:
        """Whether a statement ends with 。 and not with a full stop."""
        return self.writes_han

    @property
    def counts_in_ten_thousands(self) -> bool:
        """Whether large numbers are read in myriads (万, 亿), and months are written as numbers."""
        return self.writes_han or self.code == "ko"

    @property
    def fallback_encoding(self) -> str:
        """The most likely encoding of a text that is not UTF-8, by its iconv name."""
        return _FALLBACK_ENCODINGS.get(self.code, "latin1")

    def splitter(self) -> Splitter:
        return _SEGMENTED.get(self.code, SpaceSplitter)()

    def taken(self, word: str) -> list[str]:
        """Clean a word that the caller has segmented. An invisible word gives none.

        >>> zh = language("zh"); zh.taken(" 学习Python\u200b"), language("de").taken("Tu\u0308r zu"), zh.taken("好。走")
        (['学习Python'], ['Tür', 'zu'], ['好', '。', '走'])

        Text with spaces inside, or a whole Chinese text, is not a word and is split.
        """
        if self.splits_at_spaces or _WHOLE_TEXT.search(word):
            return self.split(word)
        return [part for part in finish("".join(clean(word).split())) if part]

    def split(self, text: str) -> list[str]:
        """Split a whole sentence into words.

        >>> language("de").split("Ein  Mann schläft.")
        ['Ein', 'Mann', 'schläft.']
        >>> language("zh").split("他在学习Python3.5。")
        ['他', '在', '学习', 'Python3.5', '。']
        """
        splitter = self.splitter()
        return splitter.feed(text) + splitter.close()

    def gap(self, previous: str | None, word: str) -> str:
        """Return what stands between two words: a space or nothing. Before the first word stands nothing.

        >>> zh = language("zh"); zh.gap("iPhone", "7"), zh.gap("学习", "Python")
        (' ', '')
        """
        if not previous or not word:
            return ""
        together = _WRITTEN_TOGETHER.match(previous[-1]) or _WRITTEN_TOGETHER.match(word[0])
        return "" if together and not self.splits_at_spaces else " "

    def join(self, words: Iterable[str]) -> str:
        """Join words as people write them.

        >>> language("zh").join(["他", "有", "iPhone", "7", "。"])
        '他有iPhone 7。'
        """
        if self.splits_at_spaces:
            return " ".join(words)
        parts: list[str] = []
        previous = None
        for word in words:
            parts += (self.gap(previous, word), word)
            previous = word
        return "".join(parts)


@cache
def language(code: str) -> Language:
    """The language that a code or an English name stands for.

    >>> [language(code).code for code in ("de", "deu", "de-DE", "German", "zho_Hans", "cmn", "en_US.UTF-8")]
    ['de', 'de', 'de', 'de', 'zh', 'zh', 'en']
    """
    wanted = re.split("[.@]", code.strip().lower().replace("_", "-"))[0]
    primary = wanted.split("-")[0]
    if wanted not in _CODES and not _LOOKS_LIKE_A_CODE.fullmatch(wanted):
        names = [name for name in _CODES if len(name) > 3]
        raise UserError(
            f"{code!r} is not a language. Expected a code such as de, en or zh, or an English name"
            f"{suggest(wanted, [*names, 'de', 'en', 'zh'])}"
        )
    return Language(_CODES.get(wanted) or _CODES.get(primary, primary))
