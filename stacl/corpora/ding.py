"""The German-English dictionary of Ding: words in their forms, phrases, and sentences that show how they are used.

A line is an entry: German, ` :: `, English. Both sides have the same number of parts, set apart by ` | `, and a part
may list other ways to say it after `;`. What stands in brackets is about the words, and not said:

    >>> from stacl.corpora.ding import said
    >>> said("jdn. (in der Öffentlichkeit) angehen; anpöbeln {vt} [soc.]", "de")
    ['jemanden angehen', 'anpöbeln']
    >>> said("to accost sb. [formal]", "en")
    ['to accost someone']
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar

from stacl.corpora import _aligned
from stacl.corpora.base import AnyPath, FolderCorpus
from stacl.support.errors import UserError

# Grammar, subject, remark, other spelling, abbreviation.
_REMARK = re.compile(r"\{[^}]*\}|\[[^]]*\]|\([^)]*\)|<[^>]*>|(?<!\S)/[^/]+/(?!\S)")
# What is left of a choice or of something unfinished: nobody says "in/of the Saarland" or "Giga…".
_UNSAYABLE = re.compile(r"[/{}\[\]()<>|~…=*+]|\.\.\.|\b(?:usw|etc|bzw|spp|z\. ?B|e\. ?g)\.")
_ABBREVIATED = {
    "de": {"jdn.": "jemanden", "jdm.": "jemandem", "jds.": "jemandes", "jd.": "jemand", "etw.": "etwas"},
    "en": {"sb.": "someone", "sth.": "something"},
}
# Subjects and ages of words that few people say.
_SPECIALIST = re.compile(
    r"\[(?:(?:ornith|techn|med|chem|bot|zool|electr|constr|min|anat|textil|phys|math|geol|biol|ling|naut|mach|biochem|phil"
    r"|pharm|arch|astron|statist|myc|photo|aviat|envir|agr|meteo|astrol|obs|poet|vulg)\."
    r"|print|veraltet|selten|alt|altertümlich)\]"
)
_SENTENCE_WORDS = 3
_MARKS = ".,;:!?\"'()„“”»«"


class Ding(FolderCorpus):
    description = "a dictionary: words in their forms, phrases, and sentences that show their use"
    licence = "GPL, version 2 or later"
    citation = "Frank Richter (1995-2023): Ding, German-English dictionary, TU Chemnitz"
    origin = "https://dict.tu-chemnitz.de; or the file de-en of Debian's package trans-de-en, saved as ding/train.txt"
    languages = ("de", "en")
    folder = "ding"
    domain_licences: ClassVar = dict.fromkeys(("sentences", "phrases", "words", "terms"), licence)
    checksums: ClassVar = {"train.txt": "34052c6021d09eadfee7a893a789204265954df70fe9c36d38fa00058d79d326"}

    def __init__(
        self,
        source: str | None = None,
        target: str | None = None,
        root: AnyPath | None = None,
        domains: str = "",
        exclude: str = "",
        among: str = "",
    ) -> None:
        """`among` names a text below the root, such as deen-large/train.de: no entry whose source has a word that does
        not stand there. A dictionary has more words than anybody says, and a model remembers only so many.
        """
        super().__init__(source, target, root, domains, exclude)
        self._among = among

    def rows(self, split: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each way to say something in the source, with the first way to say it in the target."""
        lines = _aligned.rows(list(self.files()))
        text = _aligned.rows([self.root.parent / self._among]) if self._among else ()
        known = {word for (line,) in text for word in _words(line)}
        return self._found(lines, known if self._among else None)

    def _found(self, lines: Iterator[tuple[str, ...]], known: set[str] | None) -> Iterator[tuple[str, tuple[str, ...]]]:
        empty = True
        for (line,) in lines:
            for source, target in self._pairs(line):
                if known is None or known.issuperset(_words(source)):
                    empty = False
                    yield source, (target,)
        if empty:
            raise UserError(
                f"{next(iter(self.files()))}: no entry of the wanted kind; expected lines as GERMAN :: ENGLISH"
            )

    def _pairs(self, line: str) -> Iterator[tuple[str, str]]:
        german, separator, english = line.partition(" :: ")
        if not separator or line.startswith("#"):
            return
        special = _SPECIALIST.search(line.partition(" | ")[0]) is not None
        for part in zip(german.split(" | "), english.split(" | "), strict=False):
            ways = {code: said(text, code) for code, text in zip(self.languages, part, strict=True)}
            for source in ways[self.source]:
                for target in ways[self.target][:1]:
                    if _domain(source, target, special) in self._wanted:
                        yield source, target


def said(part: str, code: str) -> list[str]:
    """The ways to say it that a part of an entry lists, as one would say them."""
    part = part.replace("’", "'").replace("./etw.", ".").replace("sb./sth.", "sb.")
    ways = (" ".join(way.split()) for way in _REMARK.sub(" ", part).split(";"))
    return [_spelt_out(way, code) for way in ways if way and not _UNSAYABLE.search(way)]


def _words(text: str) -> Iterator[str]:
    return filter(None, (word.strip(_MARKS) for word in text.split()))


def _spelt_out(text: str, code: str) -> str:
    for short, long in _ABBREVIATED[code].items():
        text = re.sub(rf"(?<!\w){re.escape(short)}", long, text)
    return re.sub(r" (?=[.,?!])", "", text)


def _domain(source: str, target: str, special: bool) -> str:
    lengths = [text.count(" ") + 1 for text in (source, target)]
    whole = all(text[0].isupper() and text.endswith((".", "?", "!")) for text in (source, target))
    if whole and lengths[0] >= _SENTENCE_WORDS:
        return "sentences"
    return "terms" if special else "words" if 1 in lengths else "phrases"
