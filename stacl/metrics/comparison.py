"""Two systems on the same sentences: whether they can be compared, and the p-values of their differences."""

from __future__ import annotations

from stacl.metrics._corpus import CorpusReport
from stacl.metrics.significance import paired_p_values, paired_quality
from stacl.support.errors import UserError


def compare(system: CorpusReport, baseline: CorpusReport, names: tuple[str, str], tokenize: str) -> dict[str, float]:
    """The p-value of every score that both reports have. Both must have been measured with `keep`.

    `names` are those of the system and the baseline in error messages.
    """
    if difference := _difference(system, baseline):
        ours, theirs = difference
        raise UserError(f"{names[0]} {ours}, {names[1]} {theirs}: a paired test needs the same")
    found = paired_p_values(system.values, baseline.values)
    if "BLEU" in system.scores and "BLEU" in baseline.scores:
        found |= paired_quality(system.texts, baseline.texts, system.references, tokenize)
    return {name: found[name] for name in system.scores if name in found}


def _difference(system: CorpusReport, baseline: CorpusReport) -> tuple[str, str] | None:
    """What shows that two logs are of different sentences or counted in different units."""
    if system.sentences != baseline.sentences:
        return f"has {system.sentences} sentences", str(baseline.sentences)
    if system.unit != baseline.unit:
        return f"counts in {system.unit!r}", f"in {baseline.unit!r}"
    if system.unit != "piece":  # pieces depend on each system's vocabulary
        lengths = zip(system.source_lengths, baseline.source_lengths, strict=True)
        for number, (ours, theirs) in enumerate(lengths, 1):
            if ours != theirs:
                return f"has {ours:g} source units in sentence {number}", f"{theirs:g}"
        for number, (one, another) in enumerate(zip(system.sources, baseline.sources, strict=True), 1):
            if one and another and one.casefold() != another.casefold():
                return f"has another source in sentence {number}", "its own"
    if system.references != baseline.references:
        return "carries its references", f"{'others' if baseline.references else 'none'} (give --reference)"
    return None
