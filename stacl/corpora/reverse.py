"""A toy task: the target is the source in reverse order.

Only a policy that waits for the whole sentence can learn it. A model that learns it under wait-1 has seen the future.
"""

from __future__ import annotations

from stacl.corpora._toy import Toy


class Reverse(Toy):
    description = "toy: the target is the source in reverse order"

    def change(self, sentence: list[str]) -> list[str]:
        return sentence[::-1]
