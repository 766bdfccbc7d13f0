"""A German-English mixture of free and research corpora. Use `exclude=ted` for models that are shipped."""

from __future__ import annotations

from typing import ClassVar

from stacl.corpora.base import FolderCorpus


class MixedDeen(FolderCorpus):
    description = "everyday sentences, software, games, parliament, news, talks, encyclopedia"
    licence = "by domain, see its card"
    citation = (
        "europarl: Koehn (2005): Europarl: A Parallel Corpus for Statistical Machine Translation; wiki-"
        "pe: Fomicheva et al. (2022): MLQE-PE: A Multilingual Quality Estimation and Post-Editing "
        "Dataset; ted: Cettolo, Girardi and Federico (2012): WIT3; news: the WMT shared tasks; tatoeba: "
        "the Tatoeba community"
    )
    origin = (
        "https://tatoeba.org, https://www.statmt.org/europarl, https://www.statmt.org (WMT), and the "
        "translation files of Debian, LibreOffice, GNOME, GIMP, Battle for Wesnoth and Cataclysm: Dark "
        "Days Ahead"
    )
    languages = ("de", "en")
    folder = "deen-large"
    domain_licences: ClassVar = {
        "docs-debian": "free licence of its project",
        "docs-desktop": "free licence of its project",
        "europarl": "free",
        "game-cdda": "free licence of its project",
        "game-wesnoth": "free licence of its project",
        "news": "WMT, research use",
        "tatoeba": "CC BY 2.0 FR",
        "ted": "CC BY-NC-ND: not for models that are shipped",
        "wiki-pe": "CC0",
    }
    checksums: ClassVar = {
        "train.de": "25aa04fb0c01a631ae3260a17a1347ba7a213206545dfc73e6aeee0a970c025c",
        "train.en": "e9506e55baf3c7a6b5a9646bcae874b529ccb94fdbf404940fb89aa555e1d1cc",
        "train.domain": "d459e83cc1bf3d15d01ce580170d93e0b4c2fd339539e1cd23c17ee563884ff8",
    }
