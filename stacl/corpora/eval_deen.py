"""German-English development and test sets; not for training."""

from __future__ import annotations

from typing import ClassVar

from stacl.corpora.base import FolderCorpus
from stacl.corpora.mixed_deen import MixedDeen


class EvalDeen(FolderCorpus):
    description = "news of 2013 (dev) and 2015 (test), talks, encyclopedia, and lines of the kinds in mixed-deen"
    licence = (
        "newstest: WMT, research use; ted-dev2010: CC BY-NC-ND; flores-dev: CC BY-SA 4.0; mixed-test: by "
        "domain, see the card; pud: as Universal Dependencies states"
    )
    citation = (
        "newstest: Bojar et al. (2013, 2015): Findings of the Workshop on Statistical Machine "
        "Translation; ted-dev2010: Cettolo, Girardi and Federico (2012): WIT3; flores-dev: NLLB Team "
        "(2022): No Language Left Behind; pud: Zeman et al. (2017): CoNLL 2017 Shared Task"
    )
    origin = "https://www.statmt.org (WMT), WIT3, FLORES, https://universaldependencies.org"
    languages = ("de", "en")
    folder = "deen-eval"
    development = frozenset({"newstest2013", "ted-dev2010", "flores-dev"})
    domain_licences = MixedDeen.domain_licences
    checksums: ClassVar = {
        "newstest2013.de": "026f4fd1fe147ece7eb201ef46063482990554d342e05db9480b1258d71d3d4f",
        "newstest2013.en": "80b81d23ddfd16724aa21b288b21f29c825c8838807aecbc65fe8a1b313325de",
        "newstest2015.de": "796cce52ab248469187b60f60715a738a0b92944dc010a69a0083de7fae1b513",
        "newstest2015.en": "422fbb5a274c7aae1a0890381cd4516307ca7bc957604220d4871a91664121e5",
        "ted-dev2010.de": "7808de2d8a5e4b5addf424718ea833f97719e88a807e78c572de047c618a7917",
        "ted-dev2010.en": "568330d69cfa2bd69e8e3bdc7a9a9b6a4bf6456b7608653d9a952e658ad6eb2e",
        "flores-dev.de": "c4bd843b62d8ad87447a1527ba5e374a8a26e42c336eab852a6bc48074487d28",
        "flores-dev.en": "af69ba360b1866a0410e74c024906e938916e017bde1882c9cccc721fe962537",
        "pud.de": "b3334a75152e3dae66e30c22ca64884ac1dea2fac3bdb0611a047cb45406e2b0",
        "pud.en": "33ba9e548762dac0b624bd1db8eb077a38d4159d3b126393d6bfbfc3089858f7",
        "mixed-test.de": "a89529046026f2e05f130c38b4928311318ecba67300d1653e168823dd9050a2",
        "mixed-test.en": "f9d4142dec5aefcf786f3199bd18f926c328eacfd39093d223767355239cf8d3",
        "mixed-test.domain": "da759e1735b292ef97a1cd78ad35402b36813ab86771b2f6ccdc1ae211a8566c",
    }
