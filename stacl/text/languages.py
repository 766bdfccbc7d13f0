"""Languages: their codes, how their text is cut into words, and how words are joined again.

A whole sentence is cut by the same code as text that arrives letter by letter: `split` is a `Splitter`
that is fed once and closed. So the words that a model was trained on are the words that it meets live.

Chinese is written without spaces. A chunk between spaces is cut into Han runs, marks and the rest:

- A Latin word or a number (`Python3.5`, `30%`) stays whole.
- A Chinese mark (`，` `。` `“`) is a word of its own. Attached to its neighbour it would double the
  vocabulary (`男人` and `男人，`), and the last word of a clause would have to wait for the mark and for the
  character after it.
- A Han run is cut by jieba's dictionary, from left to right, word by word, from a short window of what
  follows.

The window. jieba may change its mind about a word when more text comes, so a live cutter has to wait a
little and then commit. The first word of jieba's cut of the window is committed once the window holds at
least four characters (a single one may begin an idiom of four), two of them after the word, and the last
of them did not change the word; six characters, or the end of the run, settle it in any case. Compared
with jieba's cut of whole runs, on 20,000 training lines each of zhen-large and zhen-small; the look-ahead
is the mean number of characters beyond the end of a word when it is committed (a word has 1.7
characters):

    scheme             lines that differ    boundaries that differ    look-ahead
    window of 4        2.40 %   3.62 %      0.34 %    0.59 %          1.8  1.9
    window of 5        0.55 %   0.69 %      0.08 %    0.10 %          2.5  2.5
    window of 6        0.18 %   0.17 %      0.03 %    0.03 %          3.0  3.1
    window of 8        0.03 %   0.01 %      0.004 %   0.001 %         3.9  4.1
    four to six, ours  0.84 %   0.68 %      0.13 %    0.12 %          1.9  1.9

That is without jieba's hidden Markov model, which guesses words that are not in the dictionary. With it
even a window of ten differs on 4.6 % and 3.5 % of the lines, since its guesses depend on far context;
subword pieces deal with unknown names anyway.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from stacl.support.errors import UserError, suggest

# Longer "words" are cut into pieces of this many characters: no text is lost, and a stream without any white
# space (a binary file, a line of base64) cannot fill the memory or stall a model.
LONGEST_WORD = 2048  # characters: addresses are long

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

# Invisible: control characters, soft hyphen, zero-width space, direction marks, byte order mark; and halves
# of surrogate pairs, which cannot be written out. The zero-width joiners stay: emoji and Persian need them.
# And what is written in another way than models know it: wide digits, Latin letters and ＃％＆＋－．／＠, and
# the joined letters of printed pages (ﬁ).
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\u0387\u2329\u232a\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
    "\uff03\uff05\uff06\uff0b\uff0d-\uff0f\uff20\ufb00-\ufb06]"
)
_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_MARKS = (
    "\u3001-\u3004\u3006\u3008-\u3020\u3030\u303d-\u303f\u30fb\ufe10-\ufe1f\ufe30-\ufe6f"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65“”‘’—…·"
)
_ONE_HAN = re.compile(f"[{_HAN}]")
_RUNS = re.compile(f"(?P<han>[{_HAN}]+)|(?P<mark>[{_MARKS}])|(?P<other>[^{_HAN}{_MARKS}\\s]+)")
_WHOLE_TEXT = re.compile(f"[{_HAN}]{{13}}|[{_HAN}][，。！？；：、][{_HAN}]")
_WITHOUT_SPACE = re.compile(f"[{_HAN}{_MARKS}\u3040-\u30ff\uff00-\uffef]")
_WINDOW_FROM, _WINDOW_TO, _BEYOND = 4, 6, 2


class Splitter(Protocol):
    """Text in, in chunks of any size; finished words out."""

    def feed(self, text: str) -> list[str]:
        """The words that later text can no longer change."""

    def close(self) -> list[str]:
        """The rest. The splitter is then as new."""


_UNCUT = ("ja", "km", "lo", "my", "th")


@dataclass(frozen=True)
class Language:
    """How one language is written."""

    code: str
    spaced: bool = True

    @property
    def name(self) -> str:
        """In English, or the code where no name is known.

        >>> language("zh").name
        'Chinese'
        """
        return _NAMES.get(self.code, self.code)

    @property
    def tokenizer(self) -> str:
        """sacreBLEU's for this language, of those that need nothing more to be installed."""
        return "13a" if self.spaced else self.code

    @property
    def needs_spaces(self) -> bool:
        """Whether it is written without spaces and nothing here cuts it: then its text must come cut into words."""
        return self.spaced and self.code in _UNCUT

    def splitter(self) -> Splitter:
        return _SpacedSplitter() if self.spaced else _ChineseSplitter()

    def taken(self, word: str) -> list[str]:
        """A word that somebody else has cut, written as `split` writes them; nothing, if nothing is to be seen of it.
        A whole Chinese text is no word, whatever it was called, and is cut.

        >>> zh = language("zh"); zh.taken(" 学习Python\u200b"), language("de").taken("Tu\u0308r zu"), zh.taken("好。走")
        (['学习Python'], ['Tür', 'zu'], ['好', '。', '走'])
        """
        if self.spaced or _WHOLE_TEXT.search(word):
            return self.split(word)
        return [part for part in _finished("".join(clean(word).split())) if part]

    def split(self, text: str) -> list[str]:
        """The words of a whole sentence.

        >>> language("de").split("Ein  Mann schläft.")
        ['Ein', 'Mann', 'schläft.']
        >>> language("zh").split("他在学习Python3.5。")
        ['他', '在', '学习', 'Python3.5', '。']
        """
        splitter = self.splitter()
        return splitter.feed(text) + splitter.close()

    def gap(self, previous: str | None, word: str) -> str:
        """What stands between two words of this language: a space, or nothing (also before the first word).

        >>> zh = language("zh"); zh.gap("iPhone", "7"), zh.gap("学习", "Python")
        (' ', '')
        """
        if not previous or not word:
            return ""
        if not self.spaced and (_WITHOUT_SPACE.match(previous[-1]) or _WITHOUT_SPACE.match(word[0])):
            return ""
        return " "

    def join(self, words: Iterable[str]) -> str:
        """The words as people write them.

        >>> language("zh").join(["他", "有", "iPhone", "7", "。"])
        '他有iPhone 7。'
        """
        if self.spaced:
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
            f"{code!r} is no language: expected a code such as de, en, zh or an English name"
            f"{suggest(wanted, [*names, 'de', 'en', 'zh'])}"
        )
    canonical = _CODES.get(wanted) or _CODES.get(primary, primary)
    return Language(canonical, spaced=canonical != "zh")


def is_han(character: str) -> bool:
    """Whether it is a Chinese character.

    >>> is_han("好"), is_han("。")
    (True, False)
    """
    return bool(_ONE_HAN.match(character))


def clean(text: str) -> str:
    """Text without invisible characters, its digits, Latin letters and the signs of numbers and addresses narrow, its ﬁ
    apart: models meet ３．５％ and ＩＢＭ too rarely to know that they are 3.5% and IBM. White space stays, for the
    splitters.

    This and the Unicode composition in `_finished` are the only changes ever made to text: character by
    character, or inside one word, so that words cleaned one by one equal a cleaned sentence. The marks of
    sentences stay wide or narrow: ， and , are two in Chinese.
    """
    return _INVISIBLE.sub(_seen, text) if _INVISIBLE.search(text) else text


def _seen(match: re.Match[str]) -> str:
    character = match[0]
    if "\x80" <= character <= "\x9f":
        # Quotes and dashes of a Windows code page that somebody decoded as Latin-1.
        return character.encode("latin-1").decode("cp1252", "ignore")
    if "\ud800" <= character <= "\udfff":
        return "\ufffd"
    if character in "\u0387\u2329\u232a":
        # The only characters that composition turns into Chinese marks: they must be marks before the cut.
        return unicodedata.normalize("NFC", character)
    written_otherwise = "\uff03" <= character <= "\uff5a" or "\ufb00" <= character <= "\ufb06"
    return unicodedata.normalize("NFKC", character) if written_otherwise else ""


def _finished(word: str) -> list[str]:
    """A word in composed form (NFC), cut if it is overlong."""
    if len(word) <= LONGEST_WORD:
        return [word if word.isascii() else unicodedata.normalize("NFC", word)]
    pieces = (word[start : start + LONGEST_WORD] for start in range(0, len(word), LONGEST_WORD))
    return [unicodedata.normalize("NFC", piece) for piece in pieces]


def _overlong(word: str) -> tuple[list[str], str]:
    """What can be let go of a word that is not finished yet, and what remains."""
    keep = (len(word) - 1) % LONGEST_WORD + 1 if word else 0
    return (_finished(word[:-keep]) if keep < len(word) else []), word[len(word) - keep :]


class _SpacedSplitter:
    def __init__(self) -> None:
        self._open = ""

    def feed(self, text: str) -> list[str]:
        text = self._open + clean(text)
        words = text.split()
        unfinished = words.pop() if words and not text[-1].isspace() else ""
        finished = [piece for word in words for piece in _finished(word)]
        more, self._open = _overlong(unfinished)
        return finished + more

    def close(self) -> list[str]:
        rest, self._open = self._open, ""
        return _finished(rest) if rest else []


class _ChineseSplitter:
    def __init__(self) -> None:
        self._open = ""
        _jieba()  # a missing segmenter should be told now and not after the first sentence

    def feed(self, text: str) -> list[str]:
        return self._cut(self._open + clean(text), ended=False)

    def close(self) -> list[str]:
        return self._cut(self._open, ended=True)

    def _cut(self, text: str, ended: bool) -> list[str]:
        words: list[str] = []
        self._open = ""
        for match in _RUNS.finditer(text):
            run = match[0]
            complete = ended or match.end() < len(text)
            if match["han"]:
                more, self._open = _cut_han(unicodedata.normalize("NFC", run), complete)
            elif match["mark"]:
                more = [run]
            elif complete:
                more = _finished(run)
            else:
                more, self._open = _overlong(run)
            words += more
        return words


def _cut_han(run: str, complete: bool) -> tuple[list[str], str]:
    """The words of a Han run that are settled, and the rest; a complete run leaves none."""
    cut = _jieba()
    words: list[str] = []
    start = 0
    while start < len(run):
        before = None
        for size in range(_WINDOW_FROM - 1, _WINDOW_TO + 1):
            window = run[start : start + size]
            if len(window) < size and not complete:
                return words, run[start:]
            word = cut(window, False)[0]
            settled = size >= _WINDOW_FROM and word == before and size >= len(word) + _BEYOND
            if settled or len(window) < size:
                break
            before = word
        words.append(word)
        start += len(word)
    return words, ""


@cache
def _jieba() -> Callable[[str, bool], list[str]]:
    try:
        import rjieba
    except ImportError:
        raise UserError("Chinese text needs the segmenter rjieba: pip install 'rjieba>=0.2,<1'") from None
    return rjieba.cut
