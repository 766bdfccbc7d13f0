"""Decides which parts of a source sentence are translated, and which are copied to the output unchanged.

- Smileys, addresses, words in another alphabet and very long words are copied. A model has rarely seen them, and they
  spoil its translation of the rest of the sentence.
- Marks before the first word are held back until that word. If no word follows, they are copied: a model invents a
  sentence when its input is only "...".
- All-caps words are lower-cased or capitalised.
- Tags such as <i> are removed, because their place in the translation is unknown.
"""

from __future__ import annotations

import copy
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import deque

from stacl.text.characters import is_han
from stacl.text.languages import Language
from stacl.text.markup import without_tags
from stacl.text.sentences import has_text
from stacl.text.subwords import Subwords

_LONGEST = 32  # pieces: real words have fewer
_ADDRESS = re.compile(
    r"\w://\S|\bwww\.\w|[^\s@]@[^\s@.]+\.\w"  # web and e-mail addresses
    r"|\b[\w-]+\.[a-z]{2,4}/\w|^[~.]{0,2}/\w[\w.-]*/|^[a-z]:\\"  # example.org/page, /usr/bin, C:\\Windows
    r"|\b(?!\d+(?:\.\d{3}){3}\b)\d{1,3}(?:\.\d{1,3}){3}\b"  # 192.168.0.1, but not 1.000.000.000
    r"|^\W*@\w|[^\W_]_[^\W_]|\w\.(?:pdf|docx?|xlsx?|pptx?|csv|txt|jpe?g|png|mp[34]|zip|py|html?)\b",  # @me, my_file
    re.IGNORECASE,
)
_SMILEY = re.compile(r"(?:[:;=][-'’]?[()\[\]DPpOoSs/\\|*3]+|[xX]D+|<3+|\^_*\^)[.!?]*")
_TIME_OR_KEY = re.compile(r"\d{1,2}:\d\d:\d\d([.,]\d+)?|--?>|([0-9#*]\ufe0f?\u20e3)+")  # in subtitles; 1\ufe0f\u20e3
_LIKE_WORDS = {"IT", "TV", "UN", "US", "WHO"}  # abbreviations that are also common words
_MARKS = ".,;:!?…"
_ENDS = tuple(".!?…。！？")
_PICTURES = ("So", "Sk", "Cf", "Mn", "Me")  # categories of pictographs and their modifiers
_BULLETS = "•‣·◦⁃*-–—"


class SourceSentence:
    """The words of a source sentence as they arrive: which pieces the model gets, and what is copied to the output.

    Live and batched decoding use the same object, so they write the same words with the same delays.
    """

    def __init__(self, vocabulary: Subwords, language: Language) -> None:
        self._vocabulary, self._language = vocabulary, language
        self.words: list[str] = []
        self.pieces: list[int] = []  # of the words that the model gets
        self._piece_ends: list[int] = []  # len(pieces) at the end of each such word
        self._given: list[int] = []  # numbers, from 1, of the words that the model gets
        self._first = 0  # the number of the first such word with a letter or digit
        self._after_caps = False  # the previous word was in capitals
        self._after_capital = False  # the previous word was one capital letter, which may be a common word: A, I
        self._tag = ""  # an open tag that continues in the next word
        self._copies: deque[tuple[int, str]] = deque()  # numbers and words that remain to be copied

    def add(self, word: str) -> str:
        """Add the next word, and return what the model gets of it, which may be nothing."""
        given = self._given_of(word)
        if given:
            self.pieces += self._vocabulary.encode_word(given)
            self._piece_ends.append(len(self.pieces))
        return given

    def _given_of(self, word: str) -> str:
        self.words.append(word)
        number = len(self.words)
        word, self._tag = without_tags(word, self._tag)
        if not word:
            return ""
        if self._is_copied(word):
            self._copies.append((number, word))
            return ""
        self._given.append(number)
        if not has_text(word):
            return word
        self._first = self._first or number
        bare = "".join(character for character in word if not self._is_picture(character))
        if bare != word:  # a pictograph without a space before it, as in Danke😀, is copied after the word
            self._copies.append((number + 1, "".join(filter(self._is_picture, word))))
        return self._normalise_case(bare)

    @property
    def translatable(self) -> bool:
        """Whether there is something to translate. Until then nothing is written."""
        return self._first > 0

    def delay(self, read: int, unit: str) -> int:
        """Return how many words had arrived when the model had read `read` units. The end counts as a unit."""
        if read > (len(self.pieces) if unit == "piece" else len(self._given)):
            return len(self.words)  # the end was read
        given = read
        if unit == "piece" and read:  # a word counts from its first piece on
            given = min(bisect_left(self._piece_ends, read) + 1, len(self._piece_ends))
        last = self._given[given - 1] if given else 0
        return max(last, self._first) if self._first > 1 else last

    def copies_before(self, delay: int, number: int) -> list[str]:
        """Return what is copied before target word `number`, which has this delay.

        A word is copied if it had arrived by then and its number is at most that of the target word. A smiley after the
        last word stays last: it waits for the end of the sentence or for a later word that the model gets.
        """
        found: list[str] = []
        given = bisect_right(self._given, delay)
        latest = self._given[given - 1] if given else 0
        while self._copies and self._copies[0][0] <= min(delay, number + len(found)):
            if self._first <= self._copies[0][0] > latest:
                break
            found.append(self._copies.popleft()[1])
        return found

    def copies_at_end(self, last: str) -> list[str]:
        """Return what is copied at the end: what is left, or all words if nothing was translated.

        If the `last` written word ends the sentence, end marks of a copied address are removed.
        """
        found = [word.rstrip(_MARKS) or word if last.endswith(_ENDS) else word for _, word in self._copies]
        self._copies.clear()
        if self.translatable or not self.words:
            return found
        # In Chinese, marks are separate words, but they are written together.
        return ["".join(self.words)] if self._language.marks_are_words else self.words

    def copy(self) -> SourceSentence:
        twin = copy.copy(self)
        for name in ("words", "pieces", "_piece_ends", "_given", "_copies"):
            setattr(twin, name, copy.copy(getattr(self, name)))
        return twin

    def _is_copied(self, word: str) -> bool:
        if _ADDRESS.search(word) or _TIME_OR_KEY.fullmatch(word) or _SMILEY.fullmatch(word):
            return True
        if has_text(word):
            return self._pieces(word) > _LONGEST or any(map(self._is_foreign, word))
        return self._vocabulary.spells_in_bytes(word) or (not self._first and all(map(_is_pointer, word)))

    def _is_foreign(self, character: str) -> bool:
        """Whether the vocabulary lacks this letter. Han characters do not count: rare ones are spelled in bytes."""
        if character.isascii() or not character.isalpha() or (self._language.writes_han and is_han(character)):
            return False
        return self._vocabulary.spells_in_bytes(character)

    def _normalise_case(self, word: str) -> str:
        """Lower-case or capitalise an all-caps word, whichever form has the fewest pieces.

        A single all-caps word may be an abbreviation and stays, unless it is a common word that begins the sentence.
        From the second all-caps word on, the text is taken as all-caps. Words that no form makes shorter stay, as in
        "SPD, CDU". A single capital letter alone does not make the next word common: "A US soldier" stays.
        """
        bare = word.rstrip(_MARKS)
        after_caps, self._after_caps = self._after_caps, word.isupper() and len(bare) > 1
        after_capital, self._after_capital = self._after_capital, word.isupper() and len(bare) == 1
        if not word.isupper() or not (after_caps or after_capital or self._first == len(self.words)):
            return word
        small, large = bare.lower(), bare.capitalize()
        best = min(*((small, large) if after_caps or after_capital else (large, small)), bare, key=self._pieces)
        if self._pieces(best) == self._pieces(bare) > 1:
            return word
        common = after_caps or (self._pieces(best) == 1 and bare not in _LIKE_WORDS)
        return best + word[len(bare) :] if common else word

    def _pieces(self, word: str) -> int:
        return len(self._vocabulary.encode_word(word))

    def _is_picture(self, character: str) -> bool:
        return (
            character > "\u2000"
            and unicodedata.category(character) in _PICTURES
            and self._vocabulary.spells_in_bytes(character)
        )


def _is_pointer(character: str) -> bool:
    """Whether it is a bullet or an arrow at the beginning of a line. Later in the line it may have a meaning."""
    return character in _BULLETS or unicodedata.category(character) in ("So", "Sm")
