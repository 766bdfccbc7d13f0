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
from bisect import bisect_left, bisect_right
from collections import deque

from stacl.text.characters import is_han
from stacl.text.languages import Language
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


class SourceSentence:
    """The words of a source sentence as they arrive: which pieces the model gets, and what is copied to the output.

    Live and batched decoding use the same object, so they write the same words with the same delays.
    """

    def __init__(self, vocabulary: Subwords, language: Language) -> None:
        self._vocabulary, self._language = vocabulary, language
        self.words: list[str] = []
        self.pieces: list[int] = []  # of the words that the model gets
        self._piece_ends: list[int] = []  # how many of them there are up to the end of each such word
        self._given: list[int] = []  # numbers, from 1, of the words that the model gets
        self._first = 0  # the number of the first of them that has a letter or digit
        self._shouted = False  # the word before was in capitals
        self._letter = False  # it was a single one, which may be just a word: A, I
        self._tag = ""  # has begun and goes on in the next word
        self._copies: deque[tuple[int, str]] = deque()  # numbers and words that are copied, and were not yet

    def add(self, word: str) -> str:
        """Take one more word; what the model gets of it, which may be nothing."""
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
        if bare != word:  # written without a space, as in Danke😀, and copied behind it
            self._copies.append((number + 1, "".join(filter(self._is_picture, word))))
        return self._normalised_case(bare)

    @property
    def translatable(self) -> bool:
        """Whether there is something for the model to translate: until then nothing is written."""
        return self._first > 0

    def delay(self, read: int, unit: str) -> int:
        """How many words had arrived when the model had read `read` units, the end counted as one."""
        if read > (len(self.pieces) if unit == "piece" else len(self._given)):
            return len(self.words)  # the end was read
        given = read
        if unit == "piece" and read:  # a word of which one piece was read has been seen
            given = min(bisect_left(self._piece_ends, read) + 1, len(self._piece_ends))
        last = self._given[given - 1] if given else 0
        return max(last, self._first) if self._first > 1 else last

    def copies_before(self, delay: int, number: int) -> list[str]:
        """What is copied before target word `number` of this delay: what came no later, in either.

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

    def copies_at_end(self, last: str) -> list[str]:
        """What is copied at the end: what was not copied yet, or everything if nothing was translated.

        Where the `last` word written has ended the sentence, an address does not end it once more.
        """
        found = [word.rstrip(_MARKS) or word if last.endswith(_ENDS) else word for _, word in self._copies]
        self._copies.clear()
        if self.translatable or not self.words:
            return found
        # Without spaces marks are words of their own, but written together.
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
        """A letter that the vocabulary has not; of Chinese it has not all, and the model has learnt to do without."""
        if character.isascii() or not character.isalpha() or (self._language.writes_han and is_han(character)):
            return False
        return self._vocabulary.spells_in_bytes(character)

    def _normalised_case(self, word: str) -> str:
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
