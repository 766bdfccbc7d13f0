"""The contract of every file in stacl/corpora, and good and bad files of each kind of corpus."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import pytest

from stacl.corpora import _toy
from stacl.corpora.base import ROOT_VARIABLE, Concatenation, Corpus, FolderCorpus, corpus
from stacl.corpora.files import Files
from stacl.corpora.mixed_deen import MixedDeen
from stacl.support import plugins
from stacl.support.errors import UserError
from stacl.text.languages import language
from tests.corpora.test_ding import ENTRIES
from tests.samples import SAMPLE, corpora

NAMES = plugins.names("corpora")
KINDS = {name: plugins.find("corpora", name, Corpus) for name in NAMES}  # type: ignore[type-abstract]
FOLDERS = [name for name in NAMES if issubclass(KINDS[name], FolderCorpus)]


@pytest.fixture(autouse=True)
def _no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ROOT_VARIABLE, raising=False)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A root with a tiny mixed-deen corpus."""
    folder = tmp_path / "deen-large"
    folder.mkdir()
    (folder / "train.de").write_text("eins\nzwei\ndrei\nvier\n", encoding="utf-8")
    (folder / "train.en").write_text("one\ntwo\nthree\nfour\n", encoding="utf-8")
    (folder / "train.domain").write_text("ted\nnews\ngame-cdda\ngame-wesnoth\n", encoding="utf-8")
    return tmp_path


def make(name: str, root: Path | None = None) -> Corpus:
    """Any corpus by name; `files` gets two small files."""
    if name == "files":
        assert root is not None
        for code in ("de", "en"):
            (root / f"x.{code}").write_text("a b\nc\n", encoding="utf-8")
        return corpus("files:path=x", "de", "en", root)
    return corpus(name, root=root)


# The contract. It covers every new corpus file automatically.


@pytest.mark.parametrize("name", NAMES)
def test_facts(name: str, tmp_path: Path) -> None:
    found = make(name, tmp_path)
    assert found.name == name
    for fact in (found.description, found.licence, found.citation, found.origin):
        assert fact.strip() == fact
        assert fact
        assert "\n" not in fact
    assert set(found.splits.values()) <= {"train", "dev", "test"}
    assert found.splits
    assert [language(code).code for code in (found.source, found.target)] == [found.source, found.target]


@pytest.mark.parametrize("name", NAMES)
def test_both_directions(name: str, tmp_path: Path) -> None:
    found = make(name, tmp_path)
    if name == "files":
        return
    there = corpus(name, found.source, found.target, tmp_path)
    back = corpus(name, found.target, found.source, tmp_path)
    assert (there.source, there.target) == (back.target, back.source)
    only = corpus(name, source=found.target)
    assert (only.source, only.target) == (found.target, found.source)


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_split_is_reported_at_once(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no split 'trian'"):
        make(name, tmp_path).open("trian")


@pytest.mark.parametrize("name", NAMES)
def test_missing_files_are_reported_at_once(name: str, tmp_path: Path) -> None:
    found = make(name, tmp_path)
    for path in found.files():
        path.unlink(missing_ok=True)
    if found.files():
        with pytest.raises(UserError, match="no such file"):
            found.open(next(iter(found.splits)))
        assert not any(state.fits for state in found.verify())


@pytest.mark.parametrize("name", FOLDERS)
def test_without_a_root_the_error_says_how_to_set_one(name: str) -> None:
    with pytest.raises(UserError, match=f"--root.*{ROOT_VARIABLE}"):
        corpus(name).open(next(iter(corpus(name).splits)))


@pytest.mark.parametrize("name", NAMES)
def test_rows(name: str, tmp_path: Path) -> None:
    found = make(name, tmp_path)
    if isinstance(found, FolderCorpus):
        fill(found)
    check_rows(found)


@pytest.mark.corpora
@pytest.mark.parametrize("name", [name for name in FOLDERS if name != "ding"])
def test_rows_of_whole_corpora(name: str) -> None:
    check_rows(make(name, corpora()))


def fill(found: FolderCorpus) -> None:
    """Create the files of a corpus from the samples, or from sample lines of the same language."""
    found.root.mkdir()
    for path in found.files():
        sample = SAMPLE / found.folder / path.name
        if found.name == "ding":
            path.write_text(ENTRIES, encoding="utf-8")
        else:
            pair = "zhen" if "zh" in found.languages else "deen"
            usual = SAMPLE / f"{pair}-large" / f"train{path.suffix}"
            path.write_bytes((sample if sample.exists() else usual).read_bytes())


def check_rows(found: Corpus) -> None:
    """Each split opens twice with the same rows; all rows have text on both sides and as many references."""
    for split, role in found.splits.items():
        rows = list(itertools.islice(found.open_references(split), 200))
        assert rows == list(itertools.islice(found.open_references(split), 200))
        assert all(source.strip() and all(text.strip() for text in references) for source, references in rows)
        assert len({len(references) for _, references in rows}) == 1
        assert [(source, references[0]) for source, references in rows] == list(
            itertools.islice(found.open(split), 200)
        )
        assert (role == "train") == split.startswith("train")
        assert "\n" not in "".join(source for source, _ in rows)


def test_checksums_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = corpus("three-am", root=tmp_path)
    assert isinstance(found, FolderCorpus)
    fill(found)
    assert not any(state.fits for state in found.verify())  # samples, not the whole files
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in found.files()}
    monkeypatch.setattr(type(found), "checksums", sums)
    assert all(state.fits for state in corpus("three-am", root=tmp_path).verify())


@pytest.mark.corpora
@pytest.mark.parametrize("name", ["multi30k", "three-am", "eval-deen", "eval-zhen", "ted-lc"])
def test_whole_files_have_their_checksums(name: str) -> None:
    assert all(state.fits for state in corpus(name, root=corpora()).verify())


def test_further_references(tmp_path: Path) -> None:
    found = corpus("eval-zhen", root=tmp_path)
    assert isinstance(found, FolderCorpus)
    fill(found)
    assert len(next(found.open_references("newstest2017"))[1]) == 3
    assert len(next(corpus("eval-zhen", "en", "zh", tmp_path).open_references("newstest2017"))[1]) == 1


def test_domains_of_the_sample() -> None:
    def size(spec: str) -> int:
        return sum(1 for _ in corpus(spec, root=SAMPLE).open("train"))

    assert size("mixed-deen") == 600
    assert size("mixed-deen:exclude=tatoeba") == 300
    assert size("mixed-deen:domains=europarl") == 200


@pytest.mark.corpora
def test_the_sizes_of_whole_corpora() -> None:
    root = corpora()
    sizes = {split: sum(1 for _ in corpus("multi30k", root=root).open(split)) for split in ("train", "val", "test2016")}
    assert sizes == {"train": 29_000, "val": 1_014, "test2016": 1_000}
    assert len(next(corpus("eval-zhen", root=root).open_references("newstest2017"))[1]) == 3
    assert len(next(corpus("eval-zhen", "en", "zh", root).open_references("newstest2017"))[1]) == 1
    without = sum(1 for _ in corpus("mixed-deen:exclude=ted", root=root).open("train"))
    assert without == 386_567 - 8_917


# Folders, domains, directions.


def test_domains_and_groups(small: Path) -> None:
    def sources(spec: str) -> list[str]:
        return [source for source, _ in corpus(spec, root=small).open("train")]

    assert sources("mixed-deen") == ["eins", "zwei", "drei", "vier"]
    assert sources("mixed-deen:exclude=ted") == ["zwei", "drei", "vier"]
    assert sources("mixed-deen:domains=game+ted") == ["eins", "drei", "vier"]
    assert sources("mixed-deen:domains=game,exclude=game-cdda") == ["vier"]
    assert [s for s, _ in MixedDeen(root=small, exclude=["ted", "game"]).open("train")] == ["zwei"]
    assert "ted" not in MixedDeen(root=small, exclude="ted").used_domains()


def test_an_unknown_or_empty_domain(small: Path) -> None:
    with pytest.raises(UserError, match="did you mean ted"):
        corpus("mixed-deen:exclude=tedd", root=small)
    with pytest.raises(UserError, match="split train has no line of the domain"):
        list(corpus("mixed-deen:domains=europarl", root=small).open("train"))
    with pytest.raises(UserError, match="it has no domains"):
        corpus("multi30k:exclude=ted", root=small)
    (small / "deen-eval").mkdir()
    for code in ("de", "en"):
        (small / "deen-eval" / f"pud.{code}").write_text("eins\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"split pud has no \.domain file"):
        list(corpus("eval-deen:domains=tatoeba", root=small).open("pud"))
    assert list(corpus("eval-deen", root=small).open("pud")) == [("eins", "eins")]


def test_the_reverse_direction(small: Path) -> None:
    assert next(corpus("mixed-deen", "en", "de", small).open("train")) == ("one", "eins")
    assert next(corpus("mixed-deen", "English", root=small).open("train")) == ("one", "eins")
    with pytest.raises(UserError, match="between de and en, not from zh to en"):
        corpus("mixed-deen", "zh", "en", small)


def test_the_root_from_the_environment(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROOT_VARIABLE, str(small))
    assert next(corpus("mixed-deen").open("train")) == ("eins", "one")


def test_verify_sees_a_changed_file(small: Path) -> None:
    states = {state.path.name: state for state in corpus("mixed-deen", root=small).verify()}
    assert not states["train.de"].fits
    assert states["train.de"].found != states["train.de"].expected


# Lists of corpora.


def test_a_list_is_read_in_order_and_repeated_in_training_only() -> None:
    both = corpus(["copy:pairs=2,held_out=1", "reverse:pairs=1,held_out=1*3"])
    assert both.name == "copy + reverse*3"
    rows = list(both.open("train"))
    assert len(rows) == 2 + 3
    assert rows[2] == rows[3] == rows[4]
    assert len(list(both.open("val"))) == 2
    assert isinstance(corpus("copy*2"), Concatenation)
    assert not isinstance(corpus("copy"), Concatenation)


def test_a_list_needs_one_direction(small: Path) -> None:
    with pytest.raises(UserError, match="one direction"):
        corpus(["mixed-deen", "three-am"], root=small)
    with pytest.raises(UserError, match="between"):
        corpus(["mixed-deen", "three-am"], "de", "en", small)
    with pytest.raises(UserError, match="empty"):
        corpus([])


@pytest.mark.parametrize("spec", ["copy*0", "copy*x", ":", "copy:pairs", "copy:pair=3", "copi", ""])
def test_badly_written(spec: str) -> None:
    with pytest.raises(UserError):
        corpus(spec)


# A user's own files.


def write(folder: Path, **files: bytes) -> Path:
    for name, data in files.items():
        (folder / name.replace("_", ".")).write_bytes(data)
    return folder


def test_own_files(tmp_path: Path) -> None:
    write(tmp_path, a_de="\ufeffÄpfel \r\nzwei\u2028x\n".encode(), a_en=b"apples\ntwo", b_en=b"pears\n2\n")
    own = Files(
        "de",
        "en",
        tmp_path,
        splits={"train": ("a.de", "a.en"), "dev": ("a.de", "a.en", "b.en"), "x": ("a.de", "a.en")},
    )
    assert list(own.open("train")) == [("Äpfel ", "apples"), ("zwei\u2028x", "two")]
    assert next(own.open_references("dev")) == ("Äpfel ", ("apples", "pears"))
    assert dict(own.splits) == {"train": "train", "dev": "dev", "x": "test"}
    assert all(state.fits and state.found for state in own.verify())
    assert not all(s.fits for s in Files("de", "en", tmp_path, "a", checksums={"a.de": "0" * 64}).verify())
    assert list(corpus("files:source_file=a.de,target_file=a.en", "de", "en", tmp_path).open()) == list(
        own.open("train")
    )


def test_languages_by_name_mean_the_same_files(tmp_path: Path) -> None:
    write(tmp_path, a_de=b"1\n", a_en=b"2\n", b_German=b"3\n", b_en=b"4\n")
    assert list(corpus("files:path=a", "German", "English", tmp_path).open()) == [("1", "2")]
    assert list(corpus("files:path=b", "German", "English", tmp_path).open()) == [("3", "4")]


def test_unequal_files_are_named_with_their_counts(tmp_path: Path) -> None:
    write(tmp_path, a_de=b"1\n2\n3\n", a_en=b"1\n")
    with pytest.raises(UserError, match=r"a\.de has 3 lines.*a\.en has 1 lines.*line 2 has no partner"):
        list(corpus("files:path=a", "de", "en", tmp_path).open())


def test_wrong_encoding_is_named_with_file_and_line(tmp_path: Path) -> None:
    write(tmp_path, a_de=b"gut\nsch\xf6n\n", a_en=b"good\nfine\n")
    with pytest.raises(UserError, match=r"a\.de, line 2: expected UTF-8, found byte 0xf6 at column 4"):
        list(corpus("files:path=a", "de", "en", tmp_path).open())
    write(tmp_path, a_de="gut\n".encode("utf-16"))
    with pytest.raises(UserError, match="line 1: expected UTF-8"):
        list(corpus("files:path=a", "de", "en", tmp_path).open())


def test_an_empty_corpus_is_a_mistake(tmp_path: Path) -> None:
    write(tmp_path, a_de=b"", a_en=b"")
    with pytest.raises(UserError, match="empty"):
        list(corpus("files:path=a", "de", "en", tmp_path).open())


def test_own_files_need_languages_and_names(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="both languages"):
        corpus("files:path=a", source="de")
    with pytest.raises(UserError, match="path=PREFIX"):
        corpus("files", "de", "en")
    with pytest.raises(UserError, match="a source and a target file"):
        Files("de", "en", splits={"train": ("a.de",)})


def test_files_are_streamed(tmp_path: Path) -> None:
    """The first nine pairs can be read although the tenth line is broken."""
    write(tmp_path, a_de=b"1\n" * 9 + b"\xff\n", a_en=b"1\n" * 10)
    pairs = corpus("files:path=a", "de", "en", tmp_path).open()
    assert [next(pairs) for _ in range(9)] == [("1", "1")] * 9
    with pytest.raises(UserError, match="line 10"):
        next(pairs)


# Toys.


def test_toys_copy_and_reverse() -> None:
    assert all(source == target for source, target in corpus("copy:pairs=50").open())
    assert all(source.split() == target.split()[::-1] for source, target in corpus("reverse:pairs=50").open())


def test_toys_depend_on_their_options_alone() -> None:
    def first(spec: str, split: str = "train") -> list[tuple[str, str]]:
        return list(itertools.islice(corpus(spec).open(split), 20))

    assert first("copy") == first("copy")
    assert first("copy") != first("copy:seed=2")
    assert first("copy") != first("copy", "val")
    rows = first("copy:shortest=2,longest=3,vocabulary=5")
    assert {len(source.split()) for source, _ in rows} == {2, 3}
    assert {word for source, _ in rows for word in source.split()} <= set(_toy.words(5))
    assert len(list(corpus("copy:held_out=7").open("test"))) == 7


def test_the_toy_corpus_never_changes() -> None:
    """Pinned: a change would invalidate every trained toy model."""
    assert next(corpus("reverse").open("train"))[0] == PINNED


def test_toy_words_are_different() -> None:
    assert len(set(_toy.words(3600))) == 3600


@pytest.mark.parametrize("option", ["vocabulary=1", "vocabulary=9999", "longest=2", "pairs=0", "seed=x", "shortest=0"])
def test_toys_reject_invalid_options(option: str) -> None:
    with pytest.raises(UserError, match="toy corpus"):
        corpus(f"copy:{option}")


PINNED = "liti gara fasa kuku liti"
