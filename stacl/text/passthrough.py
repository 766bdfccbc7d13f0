"""What was heard of a sentence, and what of it a model is asked about.

A smiley, an address, a name in letters of another alphabet or an endless row of signs is said as it was heard: a model
has hardly seen any, and loses the sentence over it. Marks before the first word wait for that word, and if none comes
they, too, are said as they were heard: a model that is given nothing but "..." invents a sentence. Who SHOUTS is heard
as if he did not, and <i>italics</i> as if they were none: nobody knows which word of the translation they belong to.
"""

from __future__ import annotations

import copy
import re
import unicodedata
from bisect import bisect_right
from collections import deque

from stacl.text.languages import Language, is_han
from stacl.text.markup import without_tags
from stacl.text.sentences import has_text
from stacl.text.subwords import Subwords

_LONGEST = 32  # pieces: no word of a language has more
_ADDRESS = re.compile(
    r"\w://\S|\bwww\.\w|[^\s@]@[^\s@.]+\.\w"  # of the net, and of people
    r"|\b[\w-]+\.[a-z]{2,4}/\w|^[~.]{0,2}/\w[\w.-]*/|^[a-z]:\\"  # example.org/page, /usr/bin, C:\\Windows
    r"|\b(?!\d+(?:\.\d{3}){3}\b)\d{1,3}(?:\.\d{1,3}){3}\b"  # 192.168.0.1, but not 1.000.000.000
    r"|^\W*@\w|[^\W_]_[^\W_]|\w\.(?:pdf|docx?|xlsx?|pptx?|csv|txt|jpe?g|png|mp[34]|zip|py|html?)\b",  # @me, my_file
    re.IGNORECASE,
)
_SMILEY = re.compile(r"(?:[:;=][-'’]?[()\[\]DPpOoSs/\\|*3]+|[xX]D+|<3+|\^_*\^)[.!?]*")
_TIME_OR_KEY = re.compile(r"\d{1,2}:\d\d:\d\d([.,]\d+)?|--?>|([0-9#*]\ufe0f?\u20e3)+")  # of subtitles; 1\ufe0f\u20e3
_LIKE_WORDS = {"IT", "TV", "UN", "US", "WHO"}  # abbreviations
_MARKS = ".,;:!?…"
_ENDS = tuple(".!?…。！？")
_PICTURES = ("So", "Sk", "Cf", "Mn", "Me")  # and what joins and colours them
_BULLETS = "•‣·◦⁃*-–—"


class Heard:
    """The words of a sentence as they come. Live and batched decoding ask the same questions, and say the same."""

    def __init__(self, vocabulary: Subwords, language: Language) -> None:
        self._vocabulary, self._language = vocabulary, language
        self.words: list[str] = []
        self._given: list[int] = []  # numbers, from 1, of the words that the model gets
        self._first = 0  # the number of the first of them that has a letter or digit
        self._shouted = False  # the word before was in capitals
        self._letter = False  # it was a single one, which may be just a word: A, I
        self._tag = ""  # has begun and goes on in the next word
        self._copies: deque[tuple[int, str]] = deque()  # numbers and words that are said as they are, and were not yet

    def add(self, word: str) -> str:
        """Hear one more; what the model gets of it, which may be nothing."""
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
        if bare != word:  # written without a space, as in Danke😀, and said after it
            self._copies.append((number + 1, "".join(filter(self._is_picture, word))))
        return self._calm(bare)

    @property
    def translatable(self) -> bool:
        """Whether there is something to ask the model about: until then nothing is said."""
        return self._first > 0

    def delay(self, given: int, ended: bool) -> int:
        """How many words had been heard when the model had read so many of those that it gets, or the end."""
        if ended:
            return len(self.words)
        read = self._given[given - 1] if given else 0
        return max(read, self._first) if self._first > 1 else read

    def due(self, delay: int, number: int) -> list[str]:
        """What is said as it was heard before target word `number` of this delay: what came no later, in either.

        A smiley behind the last word stays behind it, however many words the translation has: it waits for the end, or
        for a later word that the model gets.
        """
        found: list[str] = []
        given = bisect_right(self._given, delay)
        latest = self._given[given - 1] if given else 0
        while self._copies and self._copies[0][0] <= min(delay, number + len(found)):
            if self._first <= self._copies[0][0] > latest:
                break
            found.append(self._copies.popleft()[1])
        return found

    def rest(self, last: str) -> list[str]:
        """What is said as it was heard at the end: what was not said yet, or everything if nothing was translated.

        Where the sentence has been ended by the `last` word said, an address does not end it once more.
        """
        found = [word.rstrip(_MARKS) or word if last.endswith(_ENDS) else word for _, word in self._copies]
        self._copies.clear()
        if self.translatable or not self.words:
            return found
        # Without spaces marks are words of their own, but written together.
        return self.words if self._language.spaced else ["".join(self.words)]

    def copy(self) -> Heard:
        twin = copy.copy(self)
        twin.words, twin._given, twin._copies = self.words.copy(), self._given.copy(), self._copies.copy()
        return twin

    def _is_copied(self, word: str) -> bool:
        if _ADDRESS.search(word) or _TIME_OR_KEY.fullmatch(word) or _SMILEY.fullmatch(word):
            return True
        if has_text(word):
            return self._pieces(word) > _LONGEST or any(map(self._is_foreign, word))
        return self._vocabulary.spells_in_bytes(word) or (not self._first and all(map(_is_pointer, word)))

    def _is_foreign(self, character: str) -> bool:
        """A letter that the vocabulary has not; of Chinese it has not all, and the model has learnt to do without."""
        if character.isascii() or not character.isalpha() or (not self._language.spaced and is_han(character)):
            return False
        return self._vocabulary.spells_in_bytes(character)

    def _calm(self, word: str) -> str:
        """Of a shout what the vocabulary knows better: small letters, or a capital at the beginning.

        One word in capitals may be an abbreviation, unless the sentence begins with it and it is a common word; from
        the second on it is a shout. ("A US soldier" is none, and in "SPD, CDU" are no words to be known better.)
        """
        bare = word.rstrip(_MARKS)
        shouted, self._shouted = self._shouted, word.isupper() and len(bare) > 1
        after_letter, self._letter = self._letter, word.isupper() and len(bare) == 1
        if not word.isupper() or not (shouted or after_letter or self._first == len(self.words)):
            return word
        small, large = bare.lower(), bare.capitalize()
        calm = min(*((small, large) if shouted or after_letter else (large, small)), bare, key=self._pieces)
        if self._pieces(calm) == self._pieces(bare) > 1:
            return word
        known = shouted or (self._pieces(calm) == 1 and bare not in _LIKE_WORDS)
        return calm + word[len(bare) :] if known else word

    def _pieces(self, word: str) -> int:
        return len(self._vocabulary.encode_word(word))

    def _is_picture(self, character: str) -> bool:
        return (
            character > "\u2000"
            and unicodedata.category(character) in _PICTURES
            and self._vocabulary.spells_in_bytes(character)
        )


def _is_pointer(character: str) -> bool:
    """At the head of a line these only point at what follows; later a model may know what they mean."""
    return character in _BULLETS or unicodedata.category(character) in ("So", "Sm")
