"""A toy task: the translation is the sentence read backwards.

Only a policy that waits for the whole sentence can learn it, so whoever learns it under wait-1 has peeked.
"""

from __future__ import annotations

from stacl.corpora._toy import Toy


class Reverse(Toy):
    description = "toy: the target is the source backwards"

    def change(self, sentence: list[str]) -> list[str]:
        return sentence[::-1]
