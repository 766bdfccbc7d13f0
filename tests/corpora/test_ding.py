"""Dictionary entries become plain pairs without grammar, remarks and incomplete choices."""

from __future__ import annotations

from pathlib import Path

import pytest

from stacl.corpora.base import corpus
from stacl.support.errors import UserError

ENTRIES = """# Version :: devel 2023-01-30
Lohnkosten {pl} [econ.] | Die Kosten sind um 9% gestiegen. :: wage cost; labour costs [Br.] | The cost is up by 9%.
etw. vorstellen; präsentieren {vt} | vorgestellt; präsentiert :: to present sth.; to show | presented
sich jdm. vorstellen {vr} :: to introduce oneself to sb.
Sommerzeit {f} [adm.] /SZ/ :: daylight saving time /DST/
Nebelkrähe {f} [ornith.] | die gemeine Nebelkrähe :: hooded crow | the common hooded crow
Giga… (Vorsilbe) | in/aus dem Saarland | usw. | alles :: giga | in the Saarland | etc. | (everything)
Das ist mir (ganz) egal . | Ja, klar! | Wirklich? :: I don’t care; Who cares? | Sure! | Really?
jdn./etw. im Auge haben :: to have sb./sth. in mind
ein Eintrag ohne Gegenstück
ein Teil | zwei Teile :: one part
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ding").mkdir()
    (tmp_path / "ding" / "train.txt").write_text(ENTRIES, encoding="utf-8")
    return tmp_path


def pairs(root: Path, spec: str, source: str = "de") -> list[tuple[str, str]]:
    return list(corpus(spec, source, root=root).open("train"))


def test_sentences(root: Path) -> None:
    assert pairs(root, "ding:domains=sentences") == [("Die Kosten sind um 9% gestiegen.", "The cost is up by 9%.")]


def test_each_alternative_is_paired_with_the_first_one_of_the_other_side(root: Path) -> None:
    assert pairs(root, "ding:domains=words") == [
        ("Lohnkosten", "wage cost"),
        ("präsentieren", "to present something"),
        ("vorgestellt", "presented"),
        ("präsentiert", "presented"),
        ("Sommerzeit", "daylight saving time"),
        ("Ja, klar!", "Sure!"),
        ("Wirklich?", "Really?"),
    ]
    assert ("labour costs", "Lohnkosten") in pairs(root, "ding", "en")
    assert ("to show", "etwas vorstellen") in pairs(root, "ding", "en")


def test_abbreviations_are_expanded(root: Path) -> None:
    found = pairs(root, "ding:domains=phrases")
    assert ("sich jemandem vorstellen", "to introduce oneself to someone") in found
    assert ("jemanden im Auge haben", "to have someone in mind") in found
    assert ("Das ist mir egal.", "I don't care") in found


def test_specialist_terms_are_a_separate_domain(root: Path) -> None:
    assert pairs(root, "ding:domains=terms") == [
        ("Nebelkrähe", "hooded crow"),
        ("die gemeine Nebelkrähe", "the common hooded crow"),
    ]
    rest = pairs(root, "ding:exclude=terms")
    assert not any("Nebelkrähe" in source for source, _ in rest)
    assert len(rest) + 2 == len(pairs(root, "ding"))


def test_incomplete_and_unpaired_parts_are_dropped(root: Path) -> None:
    found = pairs(root, "ding") + pairs(root, "ding", "en")
    assert not any(set("/{}[]()<>|…’") & set(source + target) for source, target in found)
    assert not {"alles", "usw.", "zwei Teile"} & {source for source, _ in found}
    assert ("ein Teil", "one part") in found


def test_an_unknown_domain_is_reported(root: Path) -> None:
    with pytest.raises(UserError, match="did you mean sentences"):
        corpus("ding:domains=sentence", root=root)


def test_a_file_without_entries_is_reported(root: Path) -> None:
    (root / "ding" / "train.txt").write_text("kein Eintrag\n", encoding="utf-8")
    with pytest.raises(UserError, match="no entry in the selected domains"):
        pairs(root, "ding")


def test_among_keeps_only_words_of_a_text(root: Path) -> None:
    (root / "own").mkdir()
    (root / "own" / "text.de").write_text('Er hat etwas "präsentiert", Sommerzeit.\nSo ist es.\n', encoding="utf-8")
    assert pairs(root, "ding:among=own/text.de") == [
        ("präsentiert", "presented"),
        ("Sommerzeit", "daylight saving time"),
    ]
    with pytest.raises(UserError, match="no such file"):
        pairs(root, "ding:among=own/text.en")
