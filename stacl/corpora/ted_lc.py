"""More TED talks, lower-cased and tokenised: only for lower-cased models."""

from __future__ import annotations

from typing import ClassVar

from stacl.corpora.base import FolderCorpus


class TedLc(FolderCorpus):
    description = "TED talks, lower-cased and tokenised"
    licence = "CC BY-NC-ND: not for models that are shipped"
    citation = "Cettolo, Girardi and Federico (2012): WIT3: Web Inventory of Transcribed and Translated Talks, EAMT"
    origin = "TED talks, from WIT3"
    languages = ("de", "en")
    folder = "deen-ted-lc"
    checksums: ClassVar = {
        "train-extra.de": "01e7868e3351587451e9ad921ad682f2433719f047f91183008ac6e47e9463a2",
        "train-extra.en": "348efd0edac7adc98aa21b20603df4fa1c158f80c0ba85ca9dc74147176aaaa6",
    }
