"""The interface of a corpus: sentence pairs in named splits, with licence, citation, origin and checksums.

    >>> toy = corpus("reverse:longest=4")
    >>> dict(toy.splits)
    {'train': 'train', 'val': 'dev', 'test': 'test'}
    >>> source, target = next(toy.open("val"))
    >>> source.split() == target.split()[::-1]
    True

A corpus is written as `NAME` or `NAME:option=value,option=value`. In a list of corpora, `NAME*3` repeats it three times
in training. A new corpus is a file in this folder with one class.
"""

from __future__ import annotations

import inspect
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from stacl.corpora import _aligned
from stacl.support import plugins
from stacl.support.errors import UserError, suggest
from stacl.text.languages import language

ROOT_VARIABLE = "STACL_DATA"
AnyPath = str | os.PathLike[str]


class MissingRootError(UserError):
    """Nobody said where the data folders are. How to say it depends on the command, so a command may set `option`."""

    def __init__(self, name: str, folder: str, option: str = "--root FOLDER") -> None:
        super().__init__(
            f"corpus {name} needs its files: set the folder that contains {folder} with {option}"
            f" or with the environment variable {ROOT_VARIABLE}"
        )
        self.name = name
        self.folder = folder


@dataclass(frozen=True)
class FileState:
    """The expected and the actual sha256 of one file of a corpus. `found` is empty if the file is missing."""

    path: Path
    expected: str | None
    found: str

    @property
    def fits(self) -> bool:
        return bool(self.found) and self.expected in (None, self.found)


class Corpus(ABC):
    """Sentence pairs. A subclass sets the attributes below and implements `rows`.

    `splits` maps each split to its role: `train`, `dev` (for model selection) or `test` (for results).
    """

    description: str
    licence: str
    citation: str
    origin: str
    languages: tuple[str, str]
    splits: Mapping[str, str]

    def __init__(self, source: str | None = None, target: str | None = None) -> None:
        """Set the direction. One language is enough; the default is the order of `languages`."""
        self.name = type(self).__module__.rpartition(".")[2].replace("_", "-")
        wanted = [language(code).code if code else None for code in (source, target)]
        for pair in (self.languages, self.languages[::-1]):
            if all(code in (None, own) for code, own in zip(wanted, pair, strict=True)):
                self.source, self.target = pair
                return
        raise UserError(
            f"corpus {self.name} is between {' and '.join(self.languages)},"
            f" not from {wanted[0] or 'any'} to {wanted[1] or 'any'}"
        )

    @abstractmethod
    def rows(self, split: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Stream the rows of a split: a source sentence and one or more references."""

    def open(self, split: str = "train") -> Iterator[tuple[str, str]]:
        """Stream the pairs of a split: the source and its first reference."""
        return ((source, references[0]) for source, references in self.open_references(split))

    def open_references(self, split: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Stream the source sentences of a split with all their references."""
        if split not in self.splits:
            raise UserError(f"corpus {self.name} has no split {split!r}{suggest(split, self.splits)}")
        return self.rows(split)

    def files(self) -> Mapping[Path, str | None]:
        """The files of this corpus and their expected sha256, if known."""
        return {}

    def verify(self) -> Iterator[FileState]:
        """Compare each file with its checksum, one at a time, so that a caller can show progress."""
        for path, expected in self.files().items():
            yield FileState(path, expected, _aligned.sha256(path) if path.is_file() else "")


class FolderCorpus(Corpus):
    """A corpus in a folder below the user's root.

    Its files are `SPLIT.LANGUAGE`, and `SPLIT.LABEL.LANGUAGE` for more references. `SPLIT.domain` has the domain of
    each line.
    """

    folder: ClassVar[str]
    checksums: ClassVar[Mapping[str, str]]
    development: ClassVar[frozenset[str]] = frozenset()
    # Domain -> licence. A group such as `docs` means docs-debian, docs-desktop and so on.
    domain_licences: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self,
        source: str | None = None,
        target: str | None = None,
        root: AnyPath | None = None,
        domains: str | Iterable[str] = (),
        exclude: str | Iterable[str] = (),
    ) -> None:
        super().__init__(source, target)
        found = root or os.environ.get(ROOT_VARIABLE)
        self._root = Path(found) if found else None
        self._selected = self._domains(domains) or frozenset(self.domain_licences)
        self._selected -= self._domains(exclude)
        names = dict.fromkeys(name.split(".")[0] for name in self.checksums)
        self.splits = {name: self._role(name) for name in names}

    def _role(self, split: str) -> str:
        return "train" if split.startswith("train") else "dev" if split in self.development else "test"

    def _domains(self, given: str | Iterable[str]) -> frozenset[str]:
        """Domain names with groups expanded. In a string they are separated by `+`."""
        found: set[str] = set()
        for name in filter(None, given.split("+")) if isinstance(given, str) else given:
            members = {one for one in self.domain_licences if one == name or one.startswith(f"{name}-")}
            if not members:
                hint = suggest(name, self.domain_licences) or "; it has no domains"
                raise UserError(f"corpus {self.name} has no domain {name!r}{hint}")
            found |= members
        return frozenset(found)

    @property
    def root(self) -> Path:
        if self._root is None:
            raise MissingRootError(self.name, self.folder)
        return self._root / self.folder

    def used_domains(self) -> dict[str, str]:
        """The selected domains and their licences."""
        return {name: licence for name, licence in self.domain_licences.items() if name in self._selected}

    def files(self) -> Mapping[Path, str | None]:
        return {self.root / name: checksum for name, checksum in self.checksums.items()}

    def rows(self, split: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        names = [name for name in self.checksums if name.split(".")[0] == split]
        source = next(name for name in names if name.endswith(f".{self.source}"))
        targets = [name for name in names if name.endswith(f".{self.target}")]
        domain = [name for name in names if name.endswith(".domain")]
        table = _aligned.rows([self.root / name for name in (source, *targets, *domain)])
        if self._selected == frozenset(self.domain_licences):
            return ((row[0], row[1 : 1 + len(targets)]) for row in table)
        if not domain:
            raise UserError(f"corpus {self.name}: split {split} has no .domain file, so domains cannot be selected")
        return self._in_domains(table, split)

    def _in_domains(self, table: Iterator[tuple[str, ...]], split: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        empty = True
        for source, *targets, domain in table:
            if domain in self._selected:
                empty = False
                yield source, tuple(targets)
        if empty:
            wanted = ", ".join(sorted(self._selected)) or "(all domains are excluded)"
            raise UserError(f"corpus {self.name}: split {split} has no line of the domain {wanted}")


class Concatenation(Corpus):
    """Several corpora of one direction, one after the other. In training, each is repeated by its number."""

    description = "several corpora, one after the other"

    def __init__(self, parts: Sequence[tuple[Corpus, int]]) -> None:
        if not parts:
            raise UserError("a list of corpora is empty; expected at least one name")
        first = parts[0][0]
        self.parts = tuple(parts)
        self.languages = (first.source, first.target)
        for part, _ in parts:
            if (part.source, part.target) != self.languages:
                raise UserError(
                    f"all corpora of a list must have one direction: {first.name} is {first.source}-{first.target},"
                    f" {part.name} is {part.source}-{part.target}; set source and target"
                )
        super().__init__()
        self.name = " + ".join(part.name + (f"*{times}" if times > 1 else "") for part, times in parts)
        self.licence = "; ".join(f"{part.name}: {part.licence}" for part, _ in parts)
        self.citation = "; ".join(f"{part.name}: {part.citation}" for part, _ in parts)
        self.origin = "; ".join(f"{part.name}: {part.origin}" for part, _ in parts)
        self.splits = {split: role for part, _ in parts for split, role in part.splits.items()}

    def rows(self, split: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The rows of the parts that have this split. Only training splits are repeated."""
        for part, times in self.parts:
            for _ in range(times if part.splits.get(split) == "train" else 1):
                if split in part.splits:
                    yield from part.open_references(split)

    def files(self) -> Mapping[Path, str | None]:
        return {path: checksum for part, _ in self.parts for path, checksum in part.files().items()}


def corpus(
    spec: str | Sequence[str],
    source: str | None = None,
    target: str | None = None,
    root: AnyPath | None = None,
) -> Corpus:
    """The corpus of a specification, or the concatenation of a list of specifications."""
    specs = [spec] if isinstance(spec, str) else spec
    parts = [_part(one, {"source": source, "target": target, "root": root}) for one in specs]
    if isinstance(spec, str) and parts[0][1] == 1:
        return parts[0][0]
    return Concatenation(parts)


def _part(spec: str, common: Mapping[str, Any]) -> tuple[Corpus, int]:
    written = re.fullmatch(r"([^:*]+)(?::(.*?))?(?:\*([1-9]\d*))?", spec.strip())
    if written is None:
        raise UserError(f"corpus {spec!r}: expected NAME, NAME:option=value,... or NAME*3")
    name, given, times = written.groups()
    kind: type[Corpus] = plugins.find("corpora", name.strip(), Corpus)  # type: ignore[type-abstract]
    parameters = inspect.signature(kind).parameters.values()
    # A mapping can be passed from Python only.
    known = [one.name for one in parameters if not str(one.annotation).startswith("Mapping")]
    options = {option: value for option, value in common.items() if option in known}
    for item in filter(None, (given or "").split(",")):
        option, sign, value = (part.strip() for part in item.partition("="))
        if not sign:
            raise UserError(f"corpus {name}: expected option=value, found {item!r}")
        if option not in known:
            raise UserError(f"corpus {name} has no option {option!r}{suggest(option, known)}")
        options[option] = value
    return kind(**options), int(times or 1)
