"""Length-Adaptive Average Lagging: AL that does not reward over-generation."""

from __future__ import annotations

from stacl.metrics.al import average_lagging, lagging_batch
from stacl.metrics.base import PathMetric


class LAAL(PathMetric):
    """Polák et al. 2022, Papi et al. 2022.

    LAAL = AL with Y = max(|y|, |y*|), the longer of hypothesis and reference

    With the reference length, every superfluous word would lower AL. Without a reference, Y is the hypothesis length,
    and the signature states it.
    """

    name = "LAAL"
    length = "longer"
    batch = staticmethod(lagging_batch)
    compute = staticmethod(average_lagging)
