"""Preparation of training data."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from stacl import config
from stacl.corpora.base import corpus
from stacl.runs.folder import RunFolder
from stacl.support.errors import UserError
from stacl.text.languages import Language, language
from stacl.training.augment import OpenerJoiner
from stacl.training.prepare import Prepared, prepare
from tests.helpers import GERMAN

LINES = [*GERMAN, "Guten Morgen!", "Danke."]


def prepared(folder: Path, run: str = "run", careless: float = 0.0, joined: float = 0.0) -> Prepared:
    for name, lines in {"train.de": LINES * 40, "train.en": [f"Line {n}!" for n in range(len(LINES) * 40)]}.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = f'["{folder}/train.de", "{folder}/train.en"]'
    toml = folder / "config.toml"
    toml.write_text(
        f'[data]\nsource = "de"\ntarget = "en"\ntrain_files = {files}\nvalid_files = {files}\nmax_ratio = 10.0\n'
        f"careless = {careless}\njoined = {joined}\n[text]\nvocabulary = 320\n"
    )
    return prepare(config.load(toml), RunFolder(folder / run), lambda text: None)


def text_of(found: Prepared) -> tuple[list[str], list[str]]:
    """The sources and the targets that are trained on."""
    pairs = [found.train[i] for i in range(len(found.train))]
    return (
        [" ".join(found.source.words(source.tolist())) for source, _ in pairs],
        [" ".join(found.target.words(target.tolist())) for _, target in pairs],
    )


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_share_of_careless_sources(tmp_path: Path, share: float) -> None:
    found = prepared(tmp_path, careless=share)
    sources, targets = text_of(found)
    lowered = [text for text in sources if text == text.lower() and not text.endswith((".", "!"))]
    assert {text for text in sources if text not in lowered} <= set(LINES)
    assert len(lowered) / len(sources) == pytest.approx(share, abs=0.07)
    # Targets and validation text do not change.
    assert targets[7] == "Line 7!"
    assert found.valid_text[0][0] == LINES[0]
    assert text_of(prepared(tmp_path, "again", careless=share))[0] == sources


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_share_of_joined_pairs(tmp_path: Path, share: float) -> None:
    found = prepared(tmp_path, joined=share)
    sources, targets = text_of(found)
    opened = [n for n, text in enumerate(targets) if text != f"Line {n}!"]
    assert len(opened) / len(targets) == pytest.approx(share, abs=0.1)
    for n in opened:
        # Both sides are joined with the same earlier pair.
        _, opener, rest = targets[n].replace(",", "").split(" ", 2)
        assert targets[n] == f"Line {opener}, {rest}"
        assert rest == f"Line {n}!"
        assert int(opener) < n
        before, after = LINES[int(opener) % len(LINES)].rstrip(".!?"), LINES[n % len(LINES)]
        assert sources[n] in [f"{before}, {text}" for text in (after, after[0].lower() + after[1:])]
    assert all(sources[n] == LINES[n % len(LINES)] for n in set(range(len(targets))) - set(opened))
    assert found.valid_text[0] == (LINES[0], "Line 0!")
    assert text_of(prepared(tmp_path, "again", joined=share)) == (sources, targets)


def test_only_words_that_are_usually_lower_case_are_lower_cased() -> None:
    openers = OpenerJoiner(language("de"), language("en"))
    for pair in [
        ("Ich bin müde.", "I'm tired."),
        ("Ja, das Haus ist, wie du siehst, alt.", "Yes, the house is old, as you see."),
        ("Was?", "What?"),  # a question is not an opener
    ]:
        assert openers.join(pair, None) == pair
    found = [
        openers.join(pair, random.Random(1))
        for pair in [("Das geht nicht.", "The thing won't work."), ("Haus und Hof.", "I lost all.")]
    ]
    assert found == [
        ("Ich bin müde, das geht nicht.", "I'm tired, the thing won't work."),
        ("Ich bin müde, Haus und Hof.", "I'm tired, I lost all."),
    ]
    for pair in [("Das geht " + "sehr " * 15 + "gut.", "It works."), ("Ohne Ende", "Without end")]:
        assert openers.join(pair, random.Random(1)) == pair


def test_chinese_is_joined_with_its_own_comma() -> None:
    openers = OpenerJoiner(language("zh"), language("en"))
    openers.join(("你好 。", "Hello."), None)
    joined = openers.join(("你 去 哪里 ？", "Where are you going?"), random.Random(1))
    assert joined == ("你好 ， 你 去 哪里 ？", "Hello, Where are you going?")


def test_every_sentence_is_segmented_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The filter segments each sentence; encoding and augmentation reuse its words."""
    split, calls = Language.split, []
    monkeypatch.setattr(Language, "split", lambda self, text: calls.append(text) or split(self, text))
    found = prepared(tmp_path, careless=0.3, joined=0.3)
    assert len(found.train) == len(found.valid) == len(LINES) * 40
    assert len(calls) == 2 * (len(found.train) + len(found.valid))


def test_sentences_of_a_test_set_are_left_out_of_training(tmp_path: Path) -> None:
    """Also if they come from another corpus: its text may contain references of a test set."""
    reports: list[str] = []
    toml = tmp_path / "config.toml"
    data = "[data]\nsource = 'en'\ntarget = 'en'\ncorpora = ['copy:pairs=60,held_out=12']\n[text]\nvocabulary = 320\n"
    toml.write_text(data)
    test_lines = {line for line, _ in corpus("copy:pairs=60,held_out=12").open("val")}
    both = [f"{tmp_path}/both.en"] * 2
    Path(both[0]).write_text("".join(f"{line}\n" for line in [*test_lines, "This is kept, and that too."]))
    changes = [f"data.train_files={both}".replace("'", '"'), "data.corpora=[]", 'data.valid=["copy/val"]']
    changes.append('data.unseen=["copy:pairs=60,held_out=12/val"]')
    with pytest.raises(UserError, match="NAME/SPLIT"):
        prepare(config.load(toml, [*changes, 'data.unseen=["copy"]']), RunFolder(tmp_path / "wrong"), reports.append)
    with pytest.raises(UserError, match="pieces"):  # one sentence is left, too few for a vocabulary
        prepare(config.load(toml, changes), RunFolder(tmp_path / "run"), reports.append)
    assert f"dropped {len(test_lines)}: a side occurs in a set of data.unseen" in "\n".join(reports)
