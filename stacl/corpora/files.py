"""The user's own line-aligned text files: `files:path=data/train` reads data/train.de and data/train.en."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from stacl.corpora import _aligned
from stacl.corpora.base import AnyPath, Corpus
from stacl.support.errors import UserError
from stacl.text.languages import language


class Files(Corpus):
    """Line-aligned text files of the user.

    In Python: `Files("de", "en", splits={"train": ("a.de", "a.en"), "val": ("b.de", "b.en", "b2.en")})`, with the
    source first, then one or more references. The role of a split is `train` if its name begins with `train`, `dev` if
    it begins with `val` or `dev`, else `test`.
    """

    description = "your own line-aligned text files"
    licence = "unknown: these are your own files"
    citation = "none"
    origin = "your disk"

    def __init__(
        self,
        source: str | None = None,
        target: str | None = None,
        root: AnyPath | None = None,
        path: AnyPath | None = None,
        source_file: AnyPath | None = None,
        target_file: AnyPath | None = None,
        splits: Mapping[str, Sequence[AnyPath]] | None = None,
        checksums: Mapping[str, str] | None = None,
    ) -> None:
        if not source or not target:
            raise UserError("corpus files needs both languages: source and target, such as de and en")
        self.languages = (language(source).code, language(target).code)
        super().__init__(source, target)
        if path:
            sides = (source, self.source), (target, self.target)
            splits = {"train": tuple(_ending_in(path, root, *endings) for endings in sides)}
        elif source_file and target_file:
            splits = {"train": (source_file, target_file)}
        if not splits:
            raise UserError(
                "corpus files needs its files: path=PREFIX for PREFIX.de and PREFIX.en,"
                " or source_file=FILE,target_file=FILE"
            )
        base = Path(root or "")
        self._paths = {split: [base / name for name in names] for split, names in splits.items()}
        self._checksums = {base / name: checksum for name, checksum in (checksums or {}).items()}
        for split, paths in self._paths.items():
            if len(paths) < 2:
                raise UserError(f"split {split}: expected a source and a target file, found {len(paths)} file")
        self.splits = {split: _role(split) for split in self._paths}

    def files(self) -> Mapping[Path, str | None]:
        return {path: self._checksums.get(path) for paths in self._paths.values() for path in paths}

    def rows(self, split: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        return ((row[0], row[1:]) for row in _aligned.rows(self._paths[split]))


def _ending_in(path: AnyPath, root: AnyPath | None, *endings: str) -> str:
    """`path` with the language as the user wrote it, if that file exists, else with the language code."""
    named = [f"{path}.{ending}" for ending in endings]
    return next((name for name in named if (Path(root or "") / name).exists()), named[-1])


def _role(split: str) -> str:
    return "train" if split.startswith("train") else "dev" if split.startswith(("val", "dev")) else "test"
