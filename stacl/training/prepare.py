"""Prepares the data of a run: filtered and segmented text, vocabularies, encoded pairs. All of it is streamed."""

from __future__ import annotations

import itertools
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stacl.config import Config
from stacl.corpora.base import Concatenation, Corpus, corpus
from stacl.corpora.files import Files
from stacl.models.batch import Encoded
from stacl.runs import pretrained
from stacl.runs.folder import RunFolder
from stacl.support.errors import UserError
from stacl.support.files import write_atomically, write_text_atomically
from stacl.support.progress import Progress
from stacl.text.languages import language
from stacl.text.subwords import Subwords
from stacl.training.augment import OpenerJoiner, Pair, careless, chosen
from stacl.training.filters import PairFilter, filtered, segmented

VOCABULARY_LINES = 1_000_000  # pairs that a vocabulary is learned from: more pairs cost memory and change little


@dataclass(frozen=True)
class Prepared:
    source: Subwords
    target: Subwords
    train: Encoded
    valid: Encoded
    valid_text: list[Pair]  # not segmented, for BLEU


def prepare(config: Config, run: RunFolder, report: Callable[[str], None]) -> Prepared:
    """The data and vocabularies of a run. They are made once; after a kill, the missing parts are made."""
    data = run.data
    if not all((data / part).exists() for part in ("train/encoded.json", "valid/encoded.json", "valid.tsv")):
        try:
            _make(config, run, report)
        finally:
            _words(run).unlink(missing_ok=True)
    source, target = run.vocabularies(config.text.shared)
    valid_text = list(_read(data / "valid.tsv"))
    return Prepared(source, target, Encoded(data / "train"), Encoded(data / "valid"), valid_text)


def _make(config: Config, run: RunFolder, report: Callable[[str], None]) -> None:
    # Quick checks come first: reading the training text takes minutes.
    start = _start(config)
    valid = list(_validation_pairs(config))
    if not valid:
        raise UserError("the validation set is empty")
    words = _words(run)
    words.parent.mkdir(parents=True, exist_ok=True)
    with words.open("w", encoding="utf-8") as file:
        written = sum(file.write(f"{source}\t{target}\n") for source, target in _training_pairs(config, report))
    if not written:
        raise UserError("the corpus is empty: the filters (data.max_words, data.max_ratio) left no pair to train on")
    if not (run.vocabulary / "source.model").exists():
        write_atomically(run.vocabulary, lambda path: _vocabulary(config, start, words, path, report))
    vocabularies = run.vocabularies(config.text.shared)
    text = "".join(f"{source}\t{target}\n" for source, target in valid)
    write_text_atomically(run.data / "valid.tsv", text)
    languages = language(config.data.source), language(config.data.target)
    words_of_valid = (pair.joined() for pair in segmented(valid, *languages))
    write_atomically(run.data / "valid", lambda path: _encode(path, words_of_valid, vocabularies))
    write_atomically(run.data / "train", lambda path: _encode(path, _read(words), vocabularies))


def _words(run: RunFolder) -> Path:
    """A temporary file with one segmented pair per line, read twice: for the vocabulary and for encoding."""
    return run.data / "words.tsv"


def _training_pairs(config: Config, report: Callable[[str], None]) -> Iterator[Pair]:
    """The words of every training pair, filtered and augmented; reports what the filter dropped."""
    settings = config.data
    for side in map(language, (settings.source, settings.target)):
        if side.needs_segmented_text:
            report(f"{side.name}: no word segmenter for this language; words are separated by spaces")
    found: Corpus
    if settings.train_files:
        found = Files(settings.source, settings.target, splits={"train": tuple(settings.train_files)})
    else:
        found = corpus(settings.corpora, settings.source, settings.target, settings.root or None)
    keep = PairFilter(
        language(settings.source),
        language(settings.target),
        longest=settings.max_words,
        ratio=settings.max_ratio,
        duplicates=settings.duplicates,
        unseen=_unseen(config),
    )
    bar = Progress("pairs")
    joiner = OpenerJoiner(language(settings.source), language(settings.target))
    pairs = (pair for split in _training_splits(found) for pair in filtered(found, split, keep))
    for count, pair in enumerate(pairs, start=1):
        bar.update(count)
        source, target = pair.joined()
        if settings.joined:
            source, target = joiner.join((source, target), chosen(settings.joined, "joined", count))
        yield careless(source) if chosen(settings.careless, "careless", count) else source, target
    bar.close()
    report(str(keep.report))


def _training_splits(found: Corpus) -> list[str]:
    """The names of the training splits. Every corpus must have one."""
    for part in [part for part, _ in found.parts] if isinstance(found, Concatenation) else [found]:
        if "train" not in part.splits.values():
            raise UserError(f"corpus {part.name} has no training split; its splits are {', '.join(part.splits)}")
    return [split for split, role in found.splits.items() if role == "train"]


def _validation_pairs(config: Config) -> Iterator[Pair]:
    settings = config.data
    if settings.valid_files:
        files = Files(settings.source, settings.target, splits={"valid": tuple(settings.valid_files)})
        yield from _plain(files.open("valid"))
        return
    for name in settings.valid or _own_validation_sets(config):
        yield from _plain((source, references[0]) for source, references in _named(config, name, "data.valid"))


def _unseen(config: Config) -> Iterator[str]:
    """Every sentence of the sets of data.unseen."""
    for name in config.data.unseen:
        for source, references in _named(config, name, "data.unseen"):
            yield from (source, *references)


def _named(config: Config, name: str, field: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The sources and references of a set that is written as NAME/SPLIT."""
    spec, slash, split = name.rpartition("/")
    if not slash:
        raise UserError(f"{field} takes NAME/SPLIT, for example multi30k/val, not {name!r}")
    settings = config.data
    return corpus(spec, settings.source, settings.target, settings.root or None).open_references(split)


def _own_validation_sets(config: Config) -> list[str]:
    """The first dev split of each corpus."""
    settings = config.data
    found = []
    for spec in settings.corpora:
        part = corpus(spec, settings.source, settings.target, settings.root or None)
        plain = spec.partition("*")[0]
        found += [f"{plain}/{split}" for split, role in part.splits.items() if role == "dev"][:1]
    if not found:
        raise UserError("none of the corpora has a validation set; set data.valid to NAME/SPLIT")
    return found


def _plain(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """Normalise white space: in the file, a tab separates the sides and a line feed the pairs."""
    return ((" ".join(source.split()), " ".join(target.split())) for source, target in pairs)


def _read(text: Path) -> Iterator[Pair]:
    """The pairs of a file with one pair per line, separated by a tab."""
    with text.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                source, target = line.decode().rstrip("\n").split("\t")
            except ValueError:
                raise UserError(
                    f"{text}:{number} is damaged: expected a source, a tab and its translation; "
                    "remove the file and start again"
                ) from None
            yield source, target


def _start(config: Config) -> Path | None:
    """The folder of the model for a warm start, if any; checks that it exists and fits."""
    if not config.model.start:
        return None
    start = pretrained.find(config.model.start)
    RunFolder(start).vocabularies()  # raises an error if there is none
    if (start / "vocabulary" / "target.model").exists() == config.text.shared:
        raise UserError(f"text.shared must be {str(not config.text.shared).lower()}, as in {start}")
    return start


def _vocabulary(config: Config, start: Path | None, words: Path, folder: Path, report: Callable[[str], None]) -> None:
    if start:
        other = RunFolder(start).manifest()
        ours, theirs = (config.data.source, config.data.target), (other.source, other.target)
        if ours == theirs or (config.text.shared and ours == theirs[::-1]):
            shutil.copytree(RunFolder(start).vocabulary, folder)
            return
    report(f"learning {config.text.vocabulary:,} pieces")
    _learn(config, words, folder)


def _learn(config: Config, words: Path, folder: Path) -> None:
    # Evenly spaced lines, so that every corpus contributes.
    every = math.ceil(sum(1 for _ in _read(words)) / VOCABULARY_LINES)

    def side(numbers: tuple[int, ...]) -> Iterator[list[str]]:
        for pair in itertools.islice(_read(words), 0, None, every):
            for number in numbers:
                yield pair[number].split(" ")

    folder.mkdir()
    size, coverage = config.text.vocabulary, config.text.coverage
    if config.text.shared:
        Subwords.train(side((0, 1)), size, coverage).save(folder / "source.model")
    else:
        Subwords.train(side((0,)), size, coverage).save(folder / "source.model")
        Subwords.train(side((1,)), size, coverage).save(folder / "target.model")


def _encode(folder: Path, pairs: Iterator[Pair], vocabularies: tuple[Subwords, Subwords]) -> None:
    source, target = vocabularies
    bar = Progress("encoded pairs")

    def encoded() -> Iterator[tuple[list[int], list[int]]]:
        for count, (one, other) in enumerate(pairs, start=1):
            bar.update(count)
            yield source.encode(one.split()), target.encode(other.split())

    Encoded.write(folder, encoded())
    bar.close()
