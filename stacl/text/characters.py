"""Character classes of Chinese text, and the clean-up that every text passes first."""

from __future__ import annotations

import re
import unicodedata

# Three groups of characters that `clean` drops or replaces:
# - Invisible: control characters, soft hyphen, zero-width space, direction marks, byte order mark. Zero-width joiners
#   stay, because emoji and Persian need them.
# - Halves of surrogate pairs, which cannot be encoded as UTF-8.
# - Compatibility forms: full-width digits, Latin letters and ＃％＆＋－．／＠, and ligatures (ﬁ).
_TO_CLEAN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\u0387\u2329\u232a\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
    "\uff03\uff05\uff06\uff0b\uff0d-\uff0f\uff20\ufb00-\ufb06]"
)
# Both are the inside of a character class in a regular expression.
HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
CHINESE_MARKS = (
    "\u3001-\u3004\u3006\u3008-\u3020\u3030\u303d-\u303f\u30fb\ufe10-\ufe1f\ufe30-\ufe6f"
    "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65“”‘’—…·"
)
_ONE_HAN = re.compile(f"[{HAN}]")


def is_han(character: str) -> bool:
    """Whether it is a Chinese character.

    >>> is_han("好"), is_han("。")
    (True, False)
    """
    return bool(_ONE_HAN.match(character))


def clean(text: str) -> str:
    """Remove invisible characters; write full-width digits and Latin letters narrow; take ligatures apart.

    >>> clean("３．５％ ＩＢＭ ﬁn\u200bden")
    '3.5% IBM finden'

    Models see ３．５％ and ＩＢＭ too rarely to learn that they mean 3.5% and IBM.
    Punctuation keeps its width, because ， and , are different marks in Chinese.
    White space is kept for the splitters.

    This function and the Unicode composition (NFC) of finished words are the only changes made to text. Both work on a
    single character or inside a single word, so cleaning word by word equals cleaning the sentence.
    """
    return _TO_CLEAN.sub(_replacement, text) if _TO_CLEAN.search(text) else text


def _replacement(match: re.Match[str]) -> str:
    character = match[0]
    if "\x80" <= character <= "\x9f":
        # Quotes and dashes of a Windows code page, wrongly decoded as Latin-1.
        return character.encode("latin-1").decode("cp1252", "ignore")
    if "\ud800" <= character <= "\udfff":
        return "\ufffd"
    if character in "\u0387\u2329\u232a":
        # NFC turns only these characters into Chinese marks. They must be marks before the text is split.
        return unicodedata.normalize("NFC", character)
    is_compatibility_form = "\uff03" <= character <= "\uff5a" or "\ufb00" <= character <= "\ufb06"
    return unicodedata.normalize("NFKC", character) if is_compatibility_form else ""
