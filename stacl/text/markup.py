"""The tags of pages and subtitles, which are no words: `<i>`, `<font color="#ffff00">`."""

from __future__ import annotations

import re

_NAME = r"</?(?:[abipsu]|em|strong|br|font|span|div|img|small|big|mark|code|sub|sup)"
_ATTRIBUTE = r"""\s+[\w:-]+=(?:"[^"]*"|'[^']*'|[^\s"'>]+)"""
_TAG = re.compile(rf"{_NAME}(?:{_ATTRIBUTE})*\s*/?>", re.IGNORECASE)
# A word ends inside it: after the name, after an attribute, or within what stands in quotes. In a<b nothing begins.
_BEGUN = re.compile(rf"""(?<!\w){_NAME}(?:{_ATTRIBUTE})*(?:\s+[\w:-]+=(?:"[^"<>]*|'[^'<>]*))?$""", re.IGNORECASE)
_LONGEST = 300  # characters: a quote that is never closed must not swallow a stream; the next tag ends it, too


def without_tags(word: str, begun: str = "") -> tuple[str, str]:
    """What of the word is no tag, and the tag that has begun and goes on in the next word.

    >>> without_tags("<i>gut.</i>"), without_tags("<br/>"), without_tags("a<b")
    (('gut.', ''), ('', ''), ('a<b', ''))
    >>> without_tags("<font")
    ('', '<font')
    >>> without_tags('color="red">Gut.</font>', "<font")
    ('Gut.', '')

    What only looked like a tag is over with the next word, which stays:

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
