"""Chinese-English development and test sets; not for training. Some newstest sets have several references."""

from __future__ import annotations

from typing import ClassVar

from stacl.corpora.base import FolderCorpus
from stacl.corpora.mixed_zhen import MixedZhen


class EvalZhen(FolderCorpus):
    description = "news with up to three English references, encyclopedia, and lines of the kinds in mixed-zhen"
    licence = (
        "newstest: WMT, research use; refHT and refPE of newstest2017: a research licence of their own; "
        "flores-dev: CC BY-SA 4.0; mixed-test: by domain, see the card; pud: as Universal Dependencies "
        "states"
    )
    citation = (
        "newstest: Bojar et al. (2017, 2018), Barrault et al. (2020): Findings of the Conference on "
        "Machine Translation; refHT and refPE: Hassan et al. (2018): Achieving Human Parity on Automatic "
        "Chinese to English News Translation; flores-dev: NLLB Team (2022): No Language Left Behind; pud:"
        " Zeman et al. (2017): CoNLL 2017 Shared Task"
    )
    origin = "https://www.statmt.org (WMT), FLORES, https://universaldependencies.org"
    languages = ("zh", "en")
    folder = "zhen-eval"
    development = frozenset({"flores-dev"})
    domain_licences = MixedZhen.domain_licences
    checksums: ClassVar = {
        "newstest2017.zh": "cdb2e71249ad0f39796d13e16723f6d2c4f71c6f3724806e1f46e7810f7355c0",
        "newstest2017.en": "58c844d4e3c0baf7dd9b470868aa0f88ba3951a74be2fe98f7e11e19df622351",
        "newstest2017.refHT.en": "9028f74d43829504a3f4db582c60012ce27f504e3960d9ab1fad01dae0d8ba37",
        "newstest2017.refPE.en": "be4914adcefef63873774ef3bd99e3067c6e31dc8029672c05f88fcbd77b5ce3",
        "newstest2020.zh": "1685b0bf076ca8f012b0729ac9b74ec626d6e4941dbc598da9ea1797d5e56ec8",
        "newstest2020.en": "622f9c4777743ac05bb8da8123134ec07d590486307e8b4affa22525cbb0ba17",
        "newstest2020.refB.en": "10aba3639de810c53ceec18c689712df6e3af0e8386b0a998ff5070e75cd49e9",
        "newstest2018-sub700.zh": "164b04a316c7479e5e4c5d77df2b19f53f7fc05b7d2c25aec52fdee9f030ed8b",
        "newstest2018-sub700.en": "3503761e138b5d70c7e0976da6cd02df688d2bbd8c535ca4cba9d4491ca6c8a1",
        "flores-dev.zh": "408faf610263d53b3aa173b215c0ce898b165e606f8334373d734698ca8f0575",
        "flores-dev.en": "af69ba360b1866a0410e74c024906e938916e017bde1882c9cccc721fe962537",
        "pud.zh": "98d6795cf2208dd9108ef7c921aef1b6069377d72e1273c8188c3cddb7fe1772",
        "pud.en": "33ba9e548762dac0b624bd1db8eb077a38d4159d3b126393d6bfbfc3089858f7",
        "mixed-test.zh": "5ecd99c04666ddb42783848efcdf3410cf39735605b9b9849221fd098c69a2b6",
        "mixed-test.en": "4ba355d308678dee6b6fd84fa6d22ea0db0a690cee604ef53507622ac909fe03",
        "mixed-test.domain": "07363eb4ee9078b68b0947b70940ac7c86b57654fbf96a0449cca01dac7a50f6",
    }
