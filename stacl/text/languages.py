"""Languages: their codes and names, properties of their writing, and how words are split and joined.

A language that is not in the tables below has the defaults: written with spaces, in letters with case.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from stacl.support.errors import UserError, suggest
from stacl.text.characters import CHINESE_MARKS, HAN, clean
from stacl.text.splitters import ChineseSplitter, SpaceSplitter, Splitter, finish

# Canonical codes, accepted without a look-up: importing langcodes takes 19 ms. Their names serve as suggestions.
_COMMON_CODES = "ar cs da de el en es et fa fi fr he hi hu id it ja ko nl no pl pt ro ru sv th tr uk vi zh"
_COMMON = frozenset(_COMMON_CODES.split())
_LOOKS_LIKE_A_TAG = re.compile(r"[a-z]{2,3}(-[a-z0-9]{2,8})*")

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
        """The English name, or the code if no name is known.

        >>> language("zh").name
        'Chinese'
        """
        import langcodes

        found = langcodes.Language.get(self.code)
        return found.display_name("en") if found.is_valid() else self.code

    @property
    def tokenizer(self) -> str:
        """The sacreBLEU tokenizer for this language, of those that need no additional package."""
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
        """Whether it is written in Chinese characters. They are too many for a vocabulary."""
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
    """Return the language that a code, a locale or a name (English or its own) stands for.

    >>> [language(code).code for code in ("de", "deu", "de-DE", "German", "zho_Hans", "cmn", "en_US.UTF-8")]
    ['de', 'de', 'de', 'de', 'zh', 'zh', 'en']

    A code that is not in the registry is accepted as it is, so that data sets can use their own.
    """
    wanted = re.split("[.@]", code.strip().lower().replace("_", "-"))[0]
    if wanted in _COMMON:
        return Language(wanted)
    found = _code_of_tag(wanted) if _LOOKS_LIKE_A_TAG.fullmatch(wanted) else _code_of_name(wanted)
    if found:
        return Language(found)
    names = [Language(common).name.lower() for common in _COMMON]
    raise UserError(
        f"{code!r} is not a language. Expected a code such as de, en or zh, or an English name"
        f"{suggest(wanted, [*names, 'de', 'en', 'zh'])}"
    )


def _code_of_tag(tag: str) -> str | None:
    """Return the canonical code of a language tag: `de` for deu and ger, `zh` for cmn (its main variety)."""
    import langcodes
    from langcodes.tag_parser import LanguageTagError

    try:
        return langcodes.standardize_tag(tag, macro=True).split("-")[0]
    except LanguageTagError:
        return None


def _code_of_name(name: str) -> str | None:
    """Return the code of a language from its name in English or in the language itself."""
    import langcodes

    try:
        found = langcodes.find(name)
    except LookupError:
        return None
    # langcodes also accepts names in any other language, and ignores what follows a name.
    english = found.display_name("en").lower()
    accepted = (english, *english.split(), found.autonym().lower())
    return found.prefer_macrolanguage().language if name in accepted else None
