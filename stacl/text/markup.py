"""Removes the tags of web pages and subtitles from words: `<i>`, `<font color="#ffff00">`."""

from __future__ import annotations

import re

_NAME = r"</?(?:[abipsu]|em|strong|br|font|span|div|img|small|big|mark|code|sub|sup)"
_ATTRIBUTE = r"""\s+[\w:-]+=(?:"[^"]*"|'[^']*'|[^\s"'>]+)"""
_TAG = re.compile(rf"{_NAME}(?:{_ATTRIBUTE})*\s*/?>", re.IGNORECASE)
# A tag that the end of a word interrupts: after the name, after an attribute, or inside quotes. a<b is not a tag.
_BEGUN = re.compile(rf"""(?<!\w){_NAME}(?:{_ATTRIBUTE})*(?:\s+[\w:-]+=(?:"[^"<>]*|'[^'<>]*))?$""", re.IGNORECASE)
_LONGEST = 300  # characters: an attribute whose quote is never closed must not hide the rest of a stream


def without_tags(word: str, begun: str = "") -> tuple[str, str]:
    """Return the word without tags, and the tag that is open at its end. `begun` is the tag open at its beginning.

    >>> without_tags("<i>gut.</i>"), without_tags("<br/>"), without_tags("a<b")
    (('gut.', ''), ('', ''), ('a<b', ''))
    >>> without_tags("<font")
    ('', '<font')
    >>> without_tags('color="red">Gut.</font>', "<font")
    ('Gut.', '')

    If the next word does not continue the tag, that word is kept:

    >>> without_tags("und", "<b")
    ('und', '')
    """
    if not begun and "<" not in word:
        return word, ""
    if begun:
        whole = f"{begun} {word}"
        if not (_TAG.match(whole) or _BEGUN.match(whole)) or len(whole) > _LONGEST:
            return without_tags(word)
        word = whole
    word = _TAG.sub("", word)
    unfinished = _BEGUN.search(word)
    return (word[: unfinished.start()], unfinished[0]) if unfinished else (word, "")
