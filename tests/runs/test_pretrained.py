"""The shipped models load without torch, match their model cards, and translate."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import stacl
from stacl.__main__ import main
from stacl.corpora.base import corpus
from stacl.decoding.options import Decoding
from stacl.engines.onnx import WEIGHTS, WRITE
from stacl.runs import pretrained
from stacl.runs.folder import EXPORTED
from tests.samples import SAMPLE, corpora
from tests.samples import lines as sample_lines

MEGABYTES = 12  # maximum size of each model


def test_all_directions_are_there_and_the_default_is_the_first() -> None:
    directions = ("de-en", "en-de", "zh-en", "en-zh")
    assert {*directions, *(f"photos-{direction}" for direction in directions)} == set(pretrained.names())
    assert pretrained.names()[0] == pretrained.DEFAULT == "de-en"


@pytest.mark.parametrize("name", pretrained.names())
def test_it_is_small_and_its_card_is_complete(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pretrained.folder(name)
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= MEGABYTES * 1e6
    assert main(["models", name]) == 0
    card = capsys.readouterr().out
    for part in (
        "Data",
        "icence",
        "Recipe",
        "## Figures",
        "## What it is bad at",
        "nrefs:1|case:mixed",
        "| wait-k:3 |",
    ):
        assert part in card, part


def test_the_list_names_directions_and_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    assert "photos-de-en German to English" in capsys.readouterr().out


def test_a_path_may_name_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pretrained.find(Path("de-en")) == pretrained.folder("de-en")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(pretrained.folder("photos-de-en"), "de-en")
    assert pretrained.find(Path("de-en")) == Path("de-en")
    assert pretrained.find("de-en") == pretrained.folder("de-en")


def test_a_text_of_several_sentences_is_translated_whole() -> None:
    sentences = ["Ein Hund springt über einen Zaun.", "Zwei Kinder spielen im Garten Fußball.", "Ein Mann schläft."]
    translator = stacl.load("photos-de-en", policy="full")
    assert translator.translate(" ".join(sentences)) == " ".join(map(translator.translate, sentences))


def test_it_needs_no_torch() -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "import stacl; print(stacl.load('photos-de-en').translate('Ein Mann schläft.', 'wait-k:1'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("A man ")


@pytest.mark.parametrize("name", [WEIGHTS, WRITE])
def test_a_damaged_file_is_reported(tmp_path: Path, name: str) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(pretrained.folder("photos-de-en"), copy)
    content = bytearray((copy / EXPORTED / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / EXPORTED / name).write_bytes(content)
    with pytest.raises(stacl.UserError, match="is damaged"):
        stacl.load(copy)


def test_a_text_is_not_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "Ein Mann schläft auf dem Sofa. " * 20]) == 2
    assert "the name of the model is too long" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["alles", "bekannt", "Mail", "Hm", "Punkt eins"])
@pytest.mark.parametrize("beam", [1, 5])
def test_words_are_never_translated_to_nothing(text: str, beam: int) -> None:
    assert stacl.load("de-en").translate(text, "wait-k:3", decoding=Decoding(beam=beam))


def test_lines_are_kept() -> None:
    said = stacl.load("de-en").translate("Ein Mann schläft.\r\nZwei Kinder spielen\n\nEin Hund bellt.\n", "full")
    assert [bool(line) for line in said.split("\n")] == [True, True, False, True]


def test_unknown_names_get_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "caption-de-en"]) == 2
    assert "did you mean photos-de-en" in capsys.readouterr().err
    with pytest.raises(stacl.UserError, match="did you mean photos-de-en"):
        stacl.load("photos-de-ne")


@pytest.mark.parametrize(("name", "policy"), [("de-en", "wait-k:1"), ("en-zh", "wait-k:2,unit=piece")])
def test_a_live_session_writes_the_same_as_a_batch(name: str, policy: str) -> None:
    """Also in int8, where a small rounding difference can change a word."""
    translator = stacl.load(name)
    folder, side = {"de-en": ("deen-eval", "de"), "en-zh": ("zhen-eval", "en")}[name]
    lines = sample_lines(f"{folder}/mixed-test.{side}", 60)
    batched = translator.translate_lines(lines, policy)
    for line, trace in zip(lines, batched, strict=True):
        session = translator.stream(policy)
        for word in translator.source_language.split(line):
            session.read(word)
        session.close()
        assert session.trace.target == trace.target


WHOLE = [  # of Multi30k, which is for research only
    ("photos-de-en", "multi30k/test2016", "wait-k:1", 28),
    ("photos-de-en", "multi30k/test2016", "wait-k:3", 31),
    ("photos-de-en", "multi30k/test2016", "full", 31),
    ("photos-en-de", "multi30k/test2016", "full", 29),
]


@pytest.mark.parametrize(
    ("name", "part", "policy", "least"),
    [
        *(pytest.param(*case, marks=pytest.mark.corpora) for case in WHOLE),
        ("photos-zh-en", "three-am/devtest", "wait-k:3", 10),
        ("photos-en-zh", "three-am/devtest", "wait-k:3", 15),
        ("de-en", "eval-deen/mixed-test", "wait-k:3", 19),
        ("en-de", "eval-deen/mixed-test", "wait-k:3", 12),
        ("zh-en", "eval-zhen/mixed-test", "wait-k:3", 9),
        ("en-zh", "eval-zhen/mixed-test", "wait-k:3", 17),
    ],
)
def test_it_translates_as_well_as_its_card_says(name: str, part: str, policy: str, least: int) -> None:
    """A hundred lines are enough to check that the weights are the measured ones."""
    import sacrebleu

    translator = stacl.load(name)
    source, target = translator.source_language, translator.target_language
    spec, _, split = part.rpartition("/")
    root = corpora() if spec == "multi30k" else SAMPLE
    pairs = list(corpus(spec, source.code, target.code, root).open(split))[:100]
    said = [target.join(trace.target) for trace in translator.translate_lines([one for one, _ in pairs], policy)]
    tokenizer = "zh" if target.code == "zh" else "13a"
    found = sacrebleu.corpus_bleu(said, [[right for _, right in pairs]], tokenize=tokenizer).score
    assert found > least
