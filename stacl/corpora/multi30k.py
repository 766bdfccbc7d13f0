"""Multi30k: English captions of photographs and their German translations."""

from __future__ import annotations

from typing import ClassVar

from stacl.corpora.base import FolderCorpus


class Multi30k(FolderCorpus):
    description = "captions of photographs, about 11 words each"
    licence = "research use"
    citation = (
        "Elliott, Frank, Sima'an and Specia (2016): Multi30K: Multilingual English-German Image "
        "Descriptions; test2017 and mscoco2017: Elliott, Frank, Barrault, Bougares and Specia (2017): "
        "Findings of the Second Shared Task on Multimodal Machine Translation and Multilingual Image "
        "Description"
    )
    origin = "https://github.com/multi30k/dataset"
    languages = ("de", "en")
    folder = "deen-small"
    development = frozenset({"val"})
    checksums: ClassVar = {
        "train.de": "550c2612c7ae45ed46754e67c3011fde500b1bf88592a376e2ed6126903766f7",
        "train.en": "f7cb7c7d411f6039a15de94de8c4d1709fada7b7474791598fd18451ec62427d",
        "val.de": "c02c1d05fb89dba12b00503a2744b1105d45fef287501fd701b4fea5b1fca3e5",
        "val.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
        "test2016.de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
        "test2016.en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
        "test2017.de": "0ae2c070897390d162c867271596ca6d6c9bc4fdcf6bb153621eb46eb19a027b",
        "test2017.en": "89f1090381c6663a596cb69df930ed331b1f3869a0863774ab9471748ab29f45",
        "mscoco2017.de": "6fa27772f7927065df845bac373d0d743fe91930f83f541ff320b7e6398d394c",
        "mscoco2017.en": "61426c11a797dcf771149e10de1c311912182a96db3bcd1b9af0a34e8694df0f",
    }
