"""3AM: Chinese and English captions of photographs, with ambiguous words."""

from __future__ import annotations

from typing import ClassVar

from stacl.corpora.base import FolderCorpus


class ThreeAm(FolderCorpus):
    description = "captions of photographs with ambiguous words, about 21 characters each"
    licence = "MIT"
    citation = (
        "Ma, Liu, Wong, Rao, Li, Ding, Chao, Tao and Zhang (2024): 3AM: An Ambiguity-Aware Multi-Modal "
        "Machine Translation Dataset, LREC-COLING"
    )
    origin = "https://github.com/MaxyLee/3AM"
    languages = ("zh", "en")
    folder = "zhen-small"
    development = frozenset({"val"})
    checksums: ClassVar = {
        "train.zh": "767d634c70c8d9e2557ddffa7e1bb9a70c47d917b7131d137ec8b8e09a8ca8de",
        "train.en": "6ad888b16683d3f08b68dc8232b8f0e4a38e670ceb91ee8c11e5c60865d01a83",
        "val.zh": "900d14fa691534e9ef343f8ca7fc45d225dcccf81a7967ebc655597e3d569867",
        "val.en": "7db9139605b31e966c31aba9112b5822d674b5f1e0c5e8e267ebb8fa51f72de8",
        "devtest.zh": "5b7cccded384477dd345377d6698ad050f78d65b32615447eb68a171fc74f421",
        "devtest.en": "61f54b7ce3934cfe7c50256a4df985a4a4f08b1c40d10a865873d7d24e447a0e",
    }
