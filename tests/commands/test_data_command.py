"""`stacl data` through the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from stacl.__main__ import main
from stacl.support.plugins import names
from tests.samples import corpora


@pytest.fixture(autouse=True)
def _no_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STACL_DATA", raising=False)


@pytest.fixture
def own(tmp_path: Path) -> str:
    (tmp_path / "x.de").write_text("Ein Mann schläft.\nJa.\nJa.\n\n", encoding="utf-8")
    (tmp_path / "x.en").write_text("A man is sleeping.\nYes.\nYes.\nEmpty.\n", encoding="utf-8")
    return f"files:path={tmp_path}/x,source=de,target=en"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["data", *words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_the_list_names_every_corpus_with_its_licence(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[::2]] == list(names("corpora"))
    assert all("licence: " in line for line in out.splitlines()[1::2])


def test_card_and_statistics(capsys: pytest.CaptureFixture[str], own: str) -> None:
    code, out, _ = run(capsys, own)
    assert code == 0
    assert "direction: de-en" in out
    assert (
        "train (train): 4 pairs; de 5 words, 1.2 a line, longest 3; en 7 words, 1.8 a line, longest 4; r = 1.400" in out
    )


def test_domains_show_their_licences(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "mixed-deen:exclude=ted")
    assert "domain tatoeba: CC BY 2.0 FR" in out
    assert "domain ted" not in out
    assert code == 2
    assert err.startswith("stacl data: corpus mixed-deen needs its files")


def test_prepared_files_are_aligned_and_filtered(capsys: pytest.CaptureFixture[str], own: str, tmp_path: Path) -> None:
    out_folder = tmp_path / "deep" / "out"
    code, out, _ = run(capsys, own, "--out", str(out_folder))
    assert code == 0
    assert (out_folder / "train.de").read_text(encoding="utf-8") == "Ein Mann schläft.\nJa.\n"
    assert (out_folder / "train.en").read_text(encoding="utf-8") == "A man is sleeping.\nYes.\n"
    assert "kept 2 of 4 pairs" in out
    assert "dropped 1: a side is empty" in out
    code, _, err = run(capsys, own, "--out", str(out_folder))
    assert (code, "train.de already exists; name another folder with --out" in err) == (2, True)
    out_folder = tmp_path / "again"
    run(capsys, own, "--out", str(out_folder), "--duplicates", "--longest", "2")
    assert (out_folder / "train.de").read_text(encoding="utf-8") == "Ja.\nJa.\n"
    assert sorted(path.name for path in out_folder.iterdir()) == ["train.de", "train.en"]


def test_test_sets_are_not_filtered(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, "copy:held_out=5", "--split", "val", "--longest", "1", "--out", str(tmp_path / "out"))
    assert code == 0
    assert "dropped" not in out
    assert len((tmp_path / "out" / "val.art").read_text().splitlines()) == 5
    assert len((tmp_path / "out" / "val.target.art").read_text().splitlines()) == 5


def test_broken_files_leave_nothing_behind(capsys: pytest.CaptureFixture[str], own: str, tmp_path: Path) -> None:
    (tmp_path / "x.en").write_text("A man is sleeping.\n", encoding="utf-8")
    code, _, err = run(capsys, own, "--out", str(tmp_path / "out"))
    assert code == 2
    assert "line 2 has no partner" in err
    assert list((tmp_path / "out").iterdir()) == []


def test_several_corpora(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, "copy:pairs=3", "reverse:pairs=2*2", "--split", "train")
    assert code == 0
    assert "copy + reverse*2" in out
    assert "train (train): 7 pairs" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["multi30"], "did you mean multi30k?"),
        (["copy", "--split", "vall"], "has no split 'vall'; did you mean val?"),
        (["copy:pears=3"], "did you mean pairs?"),
        (["--verify"], "require the name of a corpus"),
        (["multi30k", "--source", "zh"], "is between de and en"),
        (["multi30k", "--root", "/nowhere"], "/nowhere/deen-small/train.de: no such file"),
        (["copy", "--longest", "0", "--out", "unused"], "filter: expected 1 <= shortest <= longest"),
        (["copy", "--longest", "9"], "--longest, --ratio and --duplicates require --out"),
        (["copy", "--duplicates"], "--longest, --ratio and --duplicates require --out"),
        (["copy", "--verify", "--split", "val"], "--verify checks all files of a corpus"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    code, _, err = run(capsys, *words)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) == 1


def test_an_output_folder_that_is_a_file(capsys: pytest.CaptureFixture[str], own: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, err = run(capsys, own, "--out", str(tmp_path / "file"))
    assert code == 2
    assert "cannot be written" in err


def test_verify(capsys: pytest.CaptureFixture[str], own: str, tmp_path: Path) -> None:
    code, out, _ = run(capsys, own, "--verify")
    assert code == 0
    assert out.count("no known checksum; it has sha256") == 2
    (tmp_path / "deen-small").mkdir()
    (tmp_path / "deen-small" / "train.de").write_text("falsch\n")
    code, out, err = run(capsys, "multi30k", "--root", str(tmp_path), "--verify")
    assert code == 2
    assert "train.de: differs" in out
    assert "train.en: missing" in out
    assert "10 of 10 files of multi30k are missing or differ" in err
    assert run(capsys, "copy", "--verify")[:2] == (0, "copy has no files\n")


@pytest.mark.corpora
def test_verify_whole_files(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "three-am", "--root", str(corpora()), "--verify")
    assert code == 0
    assert out.count(": ok") == 6
