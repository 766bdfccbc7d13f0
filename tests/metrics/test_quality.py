"""BLEU is what the `sacrebleu` command prints, with one, two and three references; COMET when installed."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import pytest

from stacl.metrics import measure
from stacl.metrics.bleu import BLEU
from stacl.metrics.comet import COMET
from stacl.support.errors import UserError
from stacl.traces.logs import read_lines
from stacl.traces.trace import Trace
from tests.samples import lines

LINES = 400


def sacrebleu_command(hypothesis: Path, references: list[Path], metric: str, tokenize: str = "13a") -> float:
    command = [sys.executable, "-m", "sacrebleu", *map(str, references), "-i", str(hypothesis), "-m", metric]
    command += ["-b", "-w", "10", *(["--tokenize", tokenize] if metric == "bleu" else [])]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """Real English in three wordings, and the last of them spoilt as a system's output."""
    into = tmp_path_factory.mktemp("references")
    text = lines("deen-large/train.en", LINES)
    wordings = {
        "as-it-is": text,
        "shorter": [" ".join(line.split()[: max(1, len(line.split()) - 2)]) for line in text],
        "lower-case": [line.lower().replace(" is ", " was ") for line in text],
    }
    references = []
    for name, wording in wordings.items():
        references.append(into / name)
        references[-1].write_text("\n".join(wording) + "\n", encoding="utf-8")
    hypothesis = into / "hypothesis"
    spoilt = [" ".join(line.split()[::-1] if n % 5 == 0 else line.split()[1:]) for n, line in enumerate(wording)]
    hypothesis.write_text("\n".join(spoilt) + "\n", encoding="utf-8")
    return hypothesis, references


@pytest.mark.parametrize("count", [1, 2, 3])
def test_equal_to_the_command(corpus: tuple[Path, list[Path]], count: int) -> None:
    hypothesis, references = corpus
    traces = [
        Trace(len(words), tuple(range(1, len(words) + 1)), target=tuple(words))
        for words in map(str.split, read_lines(hypothesis))
    ]
    report = measure(traces, [read_lines(path) for path in references[:count]])
    assert report.scores["BLEU"] == pytest.approx(sacrebleu_command(hypothesis, references[:count], "bleu"), abs=1e-9)
    assert report.scores["chrF"] == pytest.approx(sacrebleu_command(hypothesis, references[:count], "chrf"), abs=1e-9)
    assert f"nrefs:{count}|" in report.signatures["BLEU"]
    bleu = report.scores["BLEU"]
    assert bleu is not None
    assert 10 < bleu < 95


def test_chinese_tokenizer(tmp_path: Path) -> None:
    reference, hypothesis = (
        "他还说现在正在为这一访问作出安排。",
        ("他", "还", "说", "正在", "为", "访问", "作出", "安排", "。"),
    )
    (tmp_path / "ref").write_text(reference + "\n", encoding="utf-8")
    (tmp_path / "hyp").write_text(" ".join(hypothesis) + "\n", encoding="utf-8")
    trace = Trace(9, tuple(range(1, 10)), target=hypothesis)
    report = measure([trace], [[reference]], tokenize="zh")
    expected = sacrebleu_command(tmp_path / "hyp", [tmp_path / "ref"], "bleu", "zh")
    assert report.scores["BLEU"] == pytest.approx(expected, abs=1e-9)
    assert "tok:zh" in report.signatures["BLEU"]
    # Joined without spaces, as a reader sees it, it is the same for this tokenizer.
    assert measure([trace], [[reference]], tokenize="zh", unit="char").scores["BLEU"] == pytest.approx(expected)


def test_unknown_tokenizer() -> None:
    with pytest.raises(UserError, match="no tokenizer '13b'; did you mean 13a"):
        BLEU("13b")


def test_comet_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "comet", None)
    with pytest.raises(UserError, match="pip install unbabel-comet"):
        COMET().corpus(["a"], [["a"]], ["x"])


def test_comet_needs_the_source() -> None:
    with pytest.raises(UserError, match="COMET needs the source text"):
        COMET().corpus(["a"], [["a"]])


def test_comet_by_its_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that scores 1 where hypothesis and reference agree: the mean over references and
    sentences.
    """

    class Model:
        def predict(self, data: list[dict[str, str]], batch_size: int, gpus: int) -> types.SimpleNamespace:
            assert [row["src"] for row in data] == ["x y", "z"]
            return types.SimpleNamespace(scores=[float(row["mt"] == row["ref"]) for row in data])

    fake = types.ModuleType("comet")
    fake.download_model = lambda name: f"/models/{name}"  # type: ignore[attr-defined]
    fake.load_from_checkpoint = lambda path: Model()  # type: ignore[attr-defined]
    fake.__version__ = "2.2"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "comet", fake)
    traces = [Trace(2, (1,), source=("x", "y"), target=("a",)), Trace(1, (1,), source=("z",), target=("b",))]
    report = measure(traces, [["a", "b"], ["a", "c"]], comet="some/model")
    assert report.scores["COMET"] == pytest.approx((1 + 0.5) / 2)
    assert report.signatures["COMET"] == "nrefs:2|model:some/model|version:2.2"


def test_pieces_that_do_not_show_where_words_end_have_no_quality() -> None:
    def pieces(*target: str) -> Trace:
        return Trace(3, (1, 2, 3), target=target, unit="piece")

    bare, reference = pieces("the", "quick", "fox"), ["the quick fox"]
    with pytest.raises(UserError, match="the pieces of sentence 1 have no word boundary marks"):
        measure([bare], [reference])
    assert measure([bare]).scores["AL"] is not None
    assert measure([bare], [reference], hypotheses=reference).scores["chrF"] == pytest.approx(100)
    # In a log that has marks elsewhere, no word of this sentence was cut.
    both = [bare, pieces("the", "qui@@", "ck")]
    assert measure(both, [["the quick fox", "the quick"]]).scores["chrF"] == pytest.approx(100)
