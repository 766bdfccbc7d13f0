"""Latency and quality metrics: pure functions of a Trace. One file per metric; the file name is its name.

`latency` scores one trace. `measure` scores a corpus, and with references also its quality. It may import traces and
everything below.
"""

from stacl.metrics._corpus import CorpusReport, measure, reference_length
from stacl.metrics.base import latency

__all__ = ["CorpusReport", "latency", "measure", "reference_length"]

HELPERS = ("comparison", "significance")  # modules that are not metrics
