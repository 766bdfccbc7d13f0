"""A Chinese-English mixture of free and research corpora."""

from __future__ import annotations

from typing import ClassVar

from stacl.corpora.base import FolderCorpus


class MixedZhen(FolderCorpus):
    description = "software and its manuals, games, everyday sentences, news, encyclopedia, health"
    licence = "by domain, see its card"
    citation = (
        "wiki-pe: Fomicheva et al. (2022): MLQE-PE: A Multilingual Quality Estimation and Post-Editing "
        "Dataset; tico19: Anastasopoulos et al. (2020): TICO-19: the Translation Initiative for COVID-19;"
        " news and newscommentary: the WMT shared tasks; tatoeba: the Tatoeba community"
    )
    origin = (
        "https://tatoeba.org, https://www.statmt.org (WMT), and the translation files of Debian, "
        "LibreOffice, GNOME, GIMP, Python, Kubernetes, Battle for Wesnoth and Cataclysm: Dark Days Ahead"
    )
    languages = ("zh", "en")
    folder = "zhen-large"
    domain_licences: ClassVar = {
        "docs-debian": "free licence of its project",
        "docs-desktop": "free licence of its project",
        "docs-kubernetes": "free licence of its project",
        "docs-python": "free licence of its project",
        "game-cdda": "free licence of its project",
        "game-wesnoth": "free licence of its project",
        "news": "WMT, research use",
        "newscommentary": "WMT, research use",
        "tatoeba": "CC BY 2.0 FR",
        "tico19": "CC0",
        "wiki-pe": "CC0",
    }
    checksums: ClassVar = {
        "train.zh": "c0a03686be364017ba998a1e93921400e0124ce1ea7f97497ef62947bc128fb8",
        "train.en": "456ea9d7824d836339b726213624d3a659260ada49ebcd31f40cef3cada714b5",
        "train.domain": "4f1be94195ffbf4b8162412008c4cadf82f7bad302b39a03a5a31c29925ab01a",
    }
