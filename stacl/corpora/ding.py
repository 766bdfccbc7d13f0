"""The German-English dictionary Ding: inflected words, phrases, and example sentences.

An entry is one line: German, ` :: `, English. Both sides have the same number of parts, separated by ` | `. A part may
list several alternatives, separated by `;`. Remarks in brackets are removed:

    >>> from stacl.corpora.ding import alternatives
    >>> alternatives("jdn. (in der Öffentlichkeit) angehen; anpöbeln {vt} [soc.]", "de")
    ['jemanden angehen', 'anpöbeln']
    >>> alternatives("to accost sb. [formal]", "en")
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
# Choices and incomplete text, such as "in/of the Saarland" or "Giga…".
_INCOMPLETE = re.compile(r"[/{}\[\]()<>|~…=*+]|\.\.\.|\b(?:usw|etc|bzw|spp|z\. ?B|e\. ?g)\.")
_ABBREVIATIONS = {
    "de": {"jdn.": "jemanden", "jdm.": "jemandem", "jds.": "jemandes", "jd.": "jemand", "etw.": "etwas"},
    "en": {"sb.": "someone", "sth.": "something"},
}
# Labels of technical, obsolete, rare and vulgar entries.
_SPECIALIST = re.compile(
    r"\[(?:(?:ornith|techn|med|chem|bot|zool|electr|constr|min|anat|textil|phys|math|geol|biol|ling|naut|mach|biochem|phil"
    r"|pharm|arch|astron|statist|myc|photo|aviat|envir|agr|meteo|astrol|obs|poet|vulg)\."
    r"|print|veraltet|selten|alt|altertümlich)\]"
)
_SENTENCE_WORDS = 3
_MARKS = ".,;:!?\"'()„“”»«"


class Ding(FolderCorpus):
    description = "a dictionary: inflected words, phrases, and example sentences"
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
        """`among` is a text file below the root, such as deen-large/train.de. Entries with a source word that is not in
        this file are dropped: most words of a dictionary are too rare for a model to learn.
        """
        super().__init__(source, target, root, domains, exclude)
        self._among = among

    def rows(self, split: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Each alternative of the source, with the first alternative of the target."""
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
                f"{next(iter(self.files()))}: no entry in the selected domains; expected lines GERMAN :: ENGLISH"
            )

    def _pairs(self, line: str) -> Iterator[tuple[str, str]]:
        german, separator, english = line.partition(" :: ")
        if not separator or line.startswith("#"):
            return
        special = _SPECIALIST.search(line.partition(" | ")[0]) is not None
        for part in zip(german.split(" | "), english.split(" | "), strict=False):
            sides = {code: alternatives(text, code) for code, text in zip(self.languages, part, strict=True)}
            for source in sides[self.source]:
                for target in sides[self.target][:1]:
                    if _domain(source, target, special) in self._selected:
                        yield source, target


def alternatives(part: str, code: str) -> list[str]:
    """The alternatives in one part of an entry, without remarks and with abbreviations expanded."""
    part = part.replace("’", "'").replace("./etw.", ".").replace("sb./sth.", "sb.")
    texts = (" ".join(text.split()) for text in _REMARK.sub(" ", part).split(";"))
    return [_expanded(text, code) for text in texts if text and not _INCOMPLETE.search(text)]


def _words(text: str) -> Iterator[str]:
    return filter(None, (word.strip(_MARKS) for word in text.split()))


def _expanded(text: str, code: str) -> str:
    for short, long in _ABBREVIATIONS[code].items():
        text = re.sub(rf"(?<!\w){re.escape(short)}", long, text)
    return re.sub(r" (?=[.,?!])", "", text)


def _domain(source: str, target: str, special: bool) -> str:
    lengths = [text.count(" ") + 1 for text in (source, target)]
    whole = all(text[0].isupper() and text.endswith((".", "?", "!")) for text in (source, target))
    if whole and lengths[0] >= _SENTENCE_WORDS:
        return "sentences"
    return "terms" if special else "words" if 1 in lengths else "phrases"
