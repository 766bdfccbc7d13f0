"""Paired comparison of two systems: checks that both scored the same sentences, and computes p-values."""

from __future__ import annotations

from stacl.metrics._corpus import CorpusReport
from stacl.metrics.significance import paired_p_values, paired_quality
from stacl.support.errors import UserError


def compare(system: CorpusReport, baseline: CorpusReport, names: tuple[str, str], tokenize: str) -> dict[str, float]:
    """The p-value of every score in both reports, which must come from `measure(..., keep=True)`.

    `names` are the names of system and baseline in error messages.
    """
    if difference := _difference(system, baseline):
        ours, theirs = difference
        raise UserError(f"{names[0]} {ours}, {names[1]} {theirs}; a paired test needs the same in both")
    found = paired_p_values(system.values, baseline.values)
    if "BLEU" in system.scores and "BLEU" in baseline.scores:
        found |= paired_quality(system.texts, baseline.texts, system.references, tokenize)
    return {name: found[name] for name in system.scores if name in found}


def _difference(system: CorpusReport, baseline: CorpusReport) -> tuple[str, str] | None:
    """The first difference that makes two logs incomparable, as (system, baseline)."""
    if system.sentences != baseline.sentences:
        return f"has {system.sentences} sentences", str(baseline.sentences)
    if system.unit != baseline.unit:
        return f"has unit {system.unit!r}", repr(baseline.unit)
    if system.unit != "piece":  # pieces depend on each system's vocabulary
        lengths = zip(system.source_lengths, baseline.source_lengths, strict=True)
        for number, (ours, theirs) in enumerate(lengths, 1):
            if ours != theirs:
                return f"has {ours:g} source units in sentence {number}", f"{theirs:g}"
        for number, (one, another) in enumerate(zip(system.sources, baseline.sources, strict=True), 1):
            if one and another and one.casefold() != another.casefold():
                return f"has one source text in sentence {number}", "another"
    if system.references != baseline.references:
        return "has references", f"{'others' if baseline.references else 'none'} (give --reference)"
    return None
