"""A toy task: the target is the source. wait-1 can learn it."""

from __future__ import annotations

from stacl.corpora._toy import Toy


class Copy(Toy):
    description = "toy: the target is the source"

    def change(self, sentence: list[str]) -> list[str]:
        return sentence
