"""`stacl distill`: a teacher's translations as a corpus, whole even after a kill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stacl import __main__, api
from stacl.corpora.base import corpus
from stacl.decoding.options import Decoding
from stacl.live.translator import Translator
from stacl.support.files import sole_writer
from stacl.training import distill
from tests.conftest import changes, stacl

CORPUS = "copy:pairs=300,held_out=12"

# So young a model does not end by itself: its BLEU would take long.
LOSS_ALONE = changes(train__bleu_lines=0, train__select="loss")


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory, toy_config: Path) -> Path:
    """A small model that has learned a little: what it says is not what the corpus says."""
    folder = tmp_path_factory.mktemp("teacher") / "run"
    options = changes(train__steps=30, train__validate_every=30, policy="full", data__corpora=f'["{CORPUS}"]')
    options += LOSS_ALONE
    done = stacl("train", toy_config, "--out", folder, *options)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def expected(teacher: Path) -> list[str]:
    translator = api.load(teacher)
    sources = [source for source, _ in corpus(CORPUS).open("test")]
    return [
        translator.target_language.join(trace.target)
        for trace in translator.translate_lines(sources, "full", decoding=Decoding(beam=2))
    ]


def command(teacher: Path, out: Path, *more: object) -> int:
    return __main__.main(
        ["distill", str(teacher), CORPUS, "--split", "test", "--beam", "2", "--out", str(out), *map(str, more)]
    )


def test_translations_stand_beside_their_sources(
    teacher: Path, expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(teacher, tmp_path / "new" / "said") == 0
    # Source and target of the toy task have one language, so the names must not fall together.
    source, target = capsys.readouterr().out.split()
    sources = [line for line, _ in corpus(CORPUS).open("test")]
    assert read(source) == sources
    assert read(target) == expected
    assert sorted(path.suffix for path in (tmp_path / "new").iterdir()) == sorted([".json", *{".source", ".target"}])
    facts = json.loads((tmp_path / "new" / "said.json").read_text())
    assert facts["beam"] == 2
    assert facts["policy"] == "full"
    assert facts["checksum"] == api.load(teacher).fingerprint


def read(path: Path | str) -> list[str]:
    with open(path, encoding="utf-8", newline="\n") as file:  # noqa: PTH123
        return [line.rstrip("\n") for line in file]


@pytest.mark.parametrize("torn", ["", "half a li"])
def test_a_killed_run_goes_on(
    teacher: Path,
    expected: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    torn: str,
) -> None:
    """Killed in the third block: the first two are not translated again, and the files come out the same."""
    monkeypatch.setattr(distill, "BLOCK", 2)
    translated: list[int] = []
    once = Translator.translate_lines

    def counted(self: Any, lines: Any, *args: Any, **options: Any) -> Any:
        if len(translated) == 2:
            raise KeyboardInterrupt
        translated.append(len(lines))
        return once(self, lines, *args, **options)

    monkeypatch.setattr(Translator, "translate_lines", counted)
    assert command(teacher, tmp_path / "said") == 130
    target = tmp_path / ".partial-said.target"
    assert len(read(target)) == 4
    assert not (tmp_path / "said.target").exists()  # nobody trains on half of it unawares
    with target.open("a") as file:
        file.write(torn)
    seen: list[str] = []

    def rest(self: Any, lines: Any, *args: Any, **options: Any) -> Any:
        seen.extend(lines)
        return once(self, lines, *args, **options)

    monkeypatch.setattr(Translator, "translate_lines", rest)
    assert command(teacher, tmp_path / "said") == 0
    assert len(seen) == 8
    assert read(tmp_path / "said.target") == expected
    assert read(tmp_path / "said.source") == [line for line, _ in corpus(CORPUS).open("test")]


def test_a_policy_that_is_edited_meanwhile_stays_what_it_was(
    teacher: Path, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("from math import inf\ndef g(t): return inf\n")
    monkeypatch.setattr(distill, "BLOCK", 6)
    once = Translator.translate_lines

    def edited(self: Any, lines: Any, *args: Any, **options: Any) -> Any:
        traces = once(self, lines, *args, **options)
        mine.write_text("half a defi")
        return traces

    monkeypatch.setattr(Translator, "translate_lines", edited)
    assert command(teacher, tmp_path / "said", "--policy", f"{mine}:g") == 0
    assert read(tmp_path / "said.target") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            ["A dog runs.", "A cat sits."],
            ".partial-said.en:2 is already translated, but the corpus has a different line",
        ),
        (["A dog runs."], ".partial-said.en:2 is already translated, but the corpus ends before it"),
    ],
)
def test_another_text_is_no_end_of_this_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: list[str], message: str
) -> None:
    """Killed, and started again on a corpus of that name elsewhere, or on one that was edited."""
    for root, lines in (("one", ["A dog runs.", "A\x0bman sits.", "It is cold."]), ("other", text)):
        (tmp_path / root / "zhen-small").mkdir(parents=True)
        for side in ("zh", "en"):
            written = "".join(f"{line}\n" for line in lines)
            (tmp_path / root / "zhen-small" / f"val.{side}").write_text(written, encoding="utf-8")

    def distilled(root: str) -> int:
        options = ["--split", "val", "--root", str(tmp_path / root), "--beam", "1", "--out", str(tmp_path / "said")]
        return __main__.main(["distill", "photos-en-de", "three-am", *options])

    with monkeypatch.context() as patched:
        patched.setattr(distill, "BLOCK", 2)
        once = Translator.translate_lines
        patched.setattr(
            *(Translator, "translate_lines"),
            lambda self, lines, *args, **options: once(self, lines, *args, **options) if len(lines) == 2 else 1 / 0,
        )
        with pytest.raises(ZeroDivisionError):
            distilled("one")
    partial = tmp_path / ".partial-said.en"
    before = partial.read_bytes()
    assert len(before.splitlines()) == 2
    assert distilled("other") == 2
    assert message in capsys.readouterr().err
    assert partial.read_bytes() == before
    assert distilled("one") == 0  # also a line that could not be written as it was
    assert len(read(tmp_path / "said.en")) == 3


def test_files_of_unequal_length_are_cut_to_what_both_have(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"a\nb\nc\n")
    other.write_bytes(b"A\nB\nhal")
    assert distill._keep_whole_lines((one, other)) == 2
    assert (one.read_bytes(), other.read_bytes()) == (b"a\nb\n", b"A\nB\n")
    assert distill._keep_whole_lines((one, tmp_path / "none")) == 0
    assert one.read_bytes() == b""


def test_a_kill_between_the_last_renames_costs_nothing(
    teacher: Path, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command(teacher, tmp_path / "said") == 0
    (tmp_path / "said.target").rename(tmp_path / ".partial-said.target")
    monkeypatch.setattr(Translator, "translate_lines", None)  # nothing is left to translate
    assert command(teacher, tmp_path / "said") == 0
    assert read(tmp_path / "said.target") == expected
    assert len(read(tmp_path / "said.source")) == len(expected)


def test_another_way_of_translating_is_not_mixed_in(
    teacher: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".partial-said.source").write_text("a\n")
    (tmp_path / ".partial-said.target").write_text("b\n")
    (tmp_path / "said.json").write_text(json.dumps({"policy": "wait-k:3"}))
    assert command(teacher, tmp_path / "said") == 2
    assert "unfinished distillation" in capsys.readouterr().err
    assert (tmp_path / ".partial-said.target").read_text() == "b\n"


def test_two_at_once_are_one_too_many(teacher: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sole_writer(tmp_path / "said", "distilling into"):
        assert command(teacher, tmp_path / "said") == 2
    assert "another process is distilling" in capsys.readouterr().err
    assert not list(tmp_path.glob("*said.*"))
    assert command(teacher, tmp_path / "said") == 0


def test_somebody_elses_file_is_not_overwritten(
    teacher: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "said.json").write_text('[{"set": "precious"}]')
    assert command(teacher, tmp_path / "said") == 2
    assert "does not describe a distillation" in capsys.readouterr().err
    assert (tmp_path / "said.json").read_text() == '[{"set": "precious"}]'


def test_a_place_that_cannot_be_written_is_said_in_one_line(
    teacher: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file" / "said", Path("/proc/nowhere/said")):
        assert command(teacher, out) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{out.parent} cannot be written" in line


@pytest.mark.parametrize("sides", [("source", "target"), ("source",), ("target",)])
def test_finished_files_are_not_overwritten(
    teacher: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], sides: tuple[str, ...]
) -> None:
    for side in sides:
        (tmp_path / f"said.{side}").write_text("precious\n")
    assert command(teacher, tmp_path / "said") == 2
    assert f"said.{sides[0]} already exists" in capsys.readouterr().err
    assert [(tmp_path / f"said.{side}").read_text() for side in sides] == ["precious\n"] * len(sides)


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--beam", "0"], "--beam must be at least 1"),
        (["--size", "0"], "--size must be at least 1"),
        (["--split", "tset"], "has no split 'tset'; did you mean test?"),
        (["--policy", "wait-q"], "wait-q"),
        (["--out", "."], "expected the start of two file names"),
    ],
)
def test_mistakes_are_said_in_one_line(
    teacher: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], complaint: str
) -> None:
    assert command(teacher, tmp_path / "said", *more) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert error.count("\n") == 1


def test_the_english_of_a_chinese_corpus_becomes_german(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Back-translation: people's English as the target of de-en, a model's German as its source."""
    english = ["A dog runs.", "Two men sit on a bench."]
    (tmp_path / "zhen-small").mkdir()
    for side, text in (("zh", ["一只狗在跑。", "两个男人坐在长凳上。"]), ("en", english)):
        (tmp_path / "zhen-small" / f"val.{side}").write_text("".join(f"{line}\n" for line in text), encoding="utf-8")
    options = ["--split", "val", "--root", str(tmp_path), "--beam", "1", "--out", str(tmp_path / "said")]
    assert __main__.main(["distill", "photos-en-de", "three-am", *options]) == 0
    pairs = list(corpus(f"files:path={tmp_path / 'said'}", "de", "en").open("train"))
    assert [target for _, target in pairs] == english
    translator = api.load("photos-en-de")
    assert [source for source, _ in pairs] == [
        translator.target_language.join(trace.target) for trace in translator.translate_lines(english, "full")
    ]
    capsys.readouterr()
    assert __main__.main(["distill", "photos-zh-en", "multi30k", *options[:-1], str(tmp_path / "no")]) == 2
    assert "is between de and en, not from zh to en" in capsys.readouterr().err


@pytest.mark.slow
def test_a_recipe_trains_on_the_result(
    teacher: Path, tmp_path: Path, toy_config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(teacher, tmp_path / "said") == 0
    source, target = capsys.readouterr().out.split()
    options = changes(train__steps=3, train__validate_every=3, data__train_files=json.dumps([source, target]))
    options += changes(data__corpora="[]", data__valid='["copy/val"]', text__vocabulary=300) + LOSS_ALONE
    done = stacl("train", toy_config, "--out", tmp_path / "student", *options)
    assert done.returncode == 0, done.stderr
