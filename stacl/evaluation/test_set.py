"""Test sets: a source text with its references, from files or from a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stacl.corpora.base import corpus
from stacl.support.errors import UserError
from stacl.traces.logs import read_lines


@dataclass(frozen=True)
class TestSet:
    """Source sentences with their references."""

    __test__ = False  # pytest collects classes whose name begins with Test

    name: str  # empty for a user's own files
    sources: list[str]
    references: dict[str, list[str]]

    @classmethod
    def from_files(cls, source: str, references: Sequence[str]) -> TestSet:
        sources = read_lines(source)
        found = {name: read_lines(name) for name in references}
        if len(found) < len(references):
            raise UserError("a reference is given twice")
        for name, lines in found.items():
            if len(lines) != len(sources):
                raise UserError(
                    f"{name} has {len(lines)} lines, but {source} has {len(sources)}; "
                    "the files must have the same number of lines"
                )
        return cls("", sources, found)

    @classmethod
    def from_corpus(cls, name: str, source: str, target: str, root: str | None) -> TestSet:
        """Load the split `CORPUS/SPLIT` from language `source` to `target`, with all its references."""
        spec, slash, split = name.rpartition("/")
        if not slash:
            raise UserError(f"--set takes NAME/SPLIT, for example multi30k/test2016, not {name!r}")
        rows = list(corpus(spec, source, target, root).open_references(split))
        columns = zip(*(references for _, references in rows), strict=True)
        references = {f"{name}#{number}": list(lines) for number, lines in enumerate(columns)}
        return cls(name, [line for line, _ in rows], references)
