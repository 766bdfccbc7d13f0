"""`stacl score` through the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stacl.__main__ import main
from stacl.traces import logs
from stacl.traces.trace import Trace
from tests.commands.score.conftest import REVISED, TRACES, scored
from tests.samples import GOLDEN


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = scored(capsys, "ours.jsonl", "--reference", "ref.en", "ref2.en")
    assert found["sentences"] == 2
    assert found["scores"]["AL"] == pytest.approx(((1 + 1.25 + 1.5) / 3 + (2 + 3 - 4 / 3 + 4 - 8 / 3) / 3) / 2)
    assert found["scores"].keys() == found["signatures"].keys()
    assert {"AL", "AL_ref", "LAAL", "AP", "CW", "CW_max", "DAL", "ATD", "YAAL", "BLEU", "chrF"} <= found[
        "scores"
    ].keys()
    assert found["signatures"]["BLEU"].startswith("nrefs:2|")


def test_the_golden_file(capsys: pytest.CaptureFixture[str]) -> None:
    path = GOLDEN / "rw_paths.txt"
    assert scored(capsys, str(path))["scores"]["AL"] == pytest.approx(5.486924076400874, abs=1e-9)
    weighted = scored(capsys, str(path), "--weighted", "--format", "rw")
    assert weighted["scores"]["AL"] == pytest.approx(5.96639835314598, abs=1e-9)


def test_formats_agree(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "ours.jsonl", "--export", "ours.log"]) == 0
    capsys.readouterr()
    by_file = [scored(capsys, name)["scores"] for name in ("ours.jsonl", "ours.rw", "ours.log")]
    assert by_file[0] == by_file[1] == by_file[2]


def test_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "ours.jsonl"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "2 sentences of ours.jsonl" in lines[0]
    assert lines[1].split() == [
        "AL",
        "1.458",
        "unit:word|length:hypothesis|eos:no|mean:sentences|n:2|stacl:0.1.0",
    ]


def test_undefined_scores_are_printed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "blind").write_text("1 1 0 0\n", encoding="utf-8")
    assert scored(capsys, "blind")["scores"]["CW"] is None
    assert main(["score", "blind"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("CW ")]
    assert line.split()[1] == "undefined"


def test_per_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", "ours.jsonl", "--per-sentence", "--reference", "ref.en"]) == 0
    table = [line.split("\t") for line in capsys.readouterr().out.splitlines() if "\t" in line]
    assert table[0][:3] == ["sentence", "AL", "AL_ref"]
    assert {"BLEU", "chrF"} <= set(table[0])
    assert [row[0] for row in table[1:]] == ["1", "2"]
    rows = scored(capsys, "ours.jsonl", "--per-sentence")["per_sentence"]
    assert rows[0]["AL"] == pytest.approx(1.25)
    assert len(rows) == 2


def test_sentences_without_output_keep_the_columns_apart(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    timed = {"read_times": [0.5, 1.0], "write_times": [0.6, 1.2]}
    spoken = {"source_length": 2, "delays": [1, 2], "target": ["a", "b"]} | timed
    silent = {"source_length": 2, "delays": []}
    (folder / "clock.jsonl").write_text("\n".join(map(json.dumps, (silent, spoken, silent))), encoding="utf-8")
    assert main(["score", "clock.jsonl", "--per-sentence"]) == 0
    header, *rows = (line.split("\t") for line in capsys.readouterr().out.splitlines() if "\t" in line)
    assert {len(row) for row in rows} == {len(header)}
    first, second, _ = (dict(zip(header, row, strict=True)) for row in rows)
    assert (first["AL"], first["AL_CA"]) == ("undefined", "undefined")
    assert float(second["AL"]) == 1.0
    assert float(second["AL_CA"]) > 500


def test_exporting_onto_the_log_or_failing_loses_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("ours.jsonl").read_bytes()
    scored(capsys, "ours.jsonl", "--export", "ours.jsonl")
    assert Path("ours.jsonl").read_bytes() == before
    Path("torn.jsonl").write_bytes(before + b"{")
    assert main(["score", "torn.jsonl", "--export", "ours.jsonl"]) == 2
    assert main(["score", "missing.jsonl", "--export", "ours.jsonl"]) == 2
    assert Path("ours.jsonl").read_bytes() == before
    assert not list(folder.glob(".partial*"))


def test_without_a_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert main(["score", "-"]) == 2
    assert "there is no standard input" in capsys.readouterr().err


def test_unit(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scored(capsys, "ours.jsonl", "--unit", "char")["signatures"]["AL"].startswith("unit:char")
    # A bare path cannot be recounted: there the option states the unit of the log.
    assert scored(capsys, "ours.rw", "--unit", "piece")["signatures"]["AL"].startswith("unit:piece")


def test_baseline_and_intervals(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = [Trace(t.source_length, (t.source_length,) * len(t.delays), target=t.target) for t in TRACES]
    logs.write(slow * 20, "slow.jsonl", "trace")
    logs.write(TRACES * 20, "fast.jsonl", "trace")
    Path("ref.en").write_text("i am well .\nwhere are you now\n" * 20, encoding="utf-8")
    options = ["fast.jsonl", "--baseline", "slow.jsonl", "--reference", "ref.en", "--intervals", "50"]
    found = scored(capsys, *options)
    assert found["p_values"]["AL"] < 0.001
    assert found["p_values"]["BLEU"] == 1  # the same words
    low, high = found["intervals"]["AL"]
    assert low <= found["scores"]["AL"] <= high
    assert main(["score", *options]) == 0
    assert "95% interval" in capsys.readouterr().out


def test_a_baseline_of_other_sentences(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(theirs: list[Trace], ours: list[Trace] = TRACES) -> str:
        logs.write(ours, "a.jsonl", "trace")
        logs.write(theirs, "b.jsonl", "trace")
        assert main(["score", "a.jsonl", "--baseline", "b.jsonl"]) == 2
        return capsys.readouterr().err

    assert "a.jsonl has unit 'word', b.jsonl 'piece'" in refused([replace(t, unit="piece") for t in TRACES])
    longer = [replace(t, source_length=9, source=()) for t in TRACES]
    assert "source units in sentence 1, b.jsonl 9; a paired test needs the same" in refused(longer)
    ours, theirs = ([replace(t, reference=text) for t in TRACES] for text in ("one", "another"))
    assert "a.jsonl has references, b.jsonl others (give --reference)" in refused(theirs, ours)
    assert "a.jsonl has references, b.jsonl none (give --reference)" in refused(TRACES, ours)
    strange = [replace(t, source=tuple("x" * len(t.source))) for t in TRACES]
    assert "a.jsonl has one source text in sentence 1, b.jsonl another" in refused(strange)


def test_words_for_a_bare_path(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("hyp").write_text("i am fine .\nwhere are you\n", encoding="utf-8")
    bare = scored(capsys, "ours.rw", "--reference", "ref.en")
    assert "BLEU" not in bare["scores"]
    assert "AL_ref" in bare["scores"]
    full = scored(capsys, "ours.rw", "--reference", "ref.en", "--hypothesis", "hyp")
    assert full["scores"] == scored(capsys, "ours.jsonl", "--reference", "ref.en")["scores"]


def test_an_exported_log_contains_the_given_texts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("hyp").write_text("i am fine .\nwhere are you\n", encoding="utf-8")
    given = ("--reference", "ref.en", "--hypothesis", "hyp")
    whole = scored(capsys, "ours.rw", *given, "--export", "whole.log")
    assert scored(capsys, "whole.log")["scores"] == whole["scores"]
    Path("src").write_text("\n".join(" ".join(trace.source) for trace in TRACES) + "\n", encoding="utf-8")
    scored(capsys, "ours.rw", "--source", "src", "--export", "heard.jsonl")
    assert [trace.source for trace in logs.read("heard.jsonl")] == [trace.source for trace in TRACES]
    logs.write([Trace(900, (300, 900), target=("a", "b"), unit="ms")], "speech.jsonl", "trace")
    assert main(["score", "speech.jsonl", "--export", "speech.rw"]) == 2
    assert "a log in milliseconds cannot be written as rw" in capsys.readouterr().err


def test_characters_are_counted_and_text_keeps_its_spaces(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "他们使用Microsoft Windows 10系统。"
    words = ("他们", "使用", "Microsoft", "Windows", "10", "系统", "。")
    signs = len(text.replace(" ", ""))
    Path("ref.zh").write_text(text + "\n", encoding="utf-8")
    logs.write([Trace(4, (1, 2, 3, 4, 4, 4, 4), target=words)], "zh.jsonl", "trace")
    instance = {"index": 0, "prediction": text, "delays": [4] * signs, "source_length": 4}
    Path("zh.log").write_text(json.dumps(instance) + "\n", encoding="utf-8")
    for log in ("zh.jsonl", "zh.log"):
        found = scored(capsys, log, "--reference", "ref.zh", "--tokenize", "zh", "--unit", "char")
        assert found["scores"]["BLEU"] == pytest.approx(100)
        assert found["scores"]["AL_ref"] == found["scores"]["AL"]  # the reference has the same length
    # The word boundaries are unknown; a space inside a name does not define them.
    assert "AL_ref" not in scored(capsys, "zh.jsonl", "--reference", "ref.zh", "--tokenize", "zh")["scores"]


def test_text_that_does_not_match_the_log_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("hyp").write_text("i am fine .\nwhere are you\n", encoding="utf-8")
    Path("other").write_text("i am fine .\nwhere on earth are you\n", encoding="utf-8")
    assert main(["score", "ours.rw", "--reference", "ref.en", "--hypothesis", "hyp"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["score", "ours.rw", "--reference", "ref.en", "--hypothesis", "other"]) == 0
    assert "sentence 2 of ours.rw writes 3 units, but its hypothesis has 5; check" in capsys.readouterr().err


def test_revisions_share_the_clock(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("revised.jsonl").write_text(REVISED)
    scores = scored(capsys, "revised.jsonl")["scores"]
    assert scores["NE"] == 0
    told = Trace(2, (1, 2), target=("a", "b"), read_times=(0.4, 0.8), write_times=(0.5, 0.9))
    logs.write([told], "told.jsonl", "trace")
    assert scores["AL_CA"] == scored(capsys, "told.jsonl")["scores"]["AL_CA"]
    # The words after all revisions are the final ones.
    Path("revised.jsonl").write_text(REVISED.replace('"target": ["a", "b"], ', ""))
    assert [trace.target for trace in logs.read("revised.jsonl")] == [("a", "b")]


SPEECH = (
    '{"index": 0, "prediction": "%s", "delays": [1000.0, 1000.0, 2000.5, 2500.5], "elapsed": [1100, 1100, 2200, 2900],'
    ' "prediction_length": 4, "reference": "你好世界", "source": ["a.wav"], "source_length": %s}\n'
)


@pytest.mark.parametrize("length", ["2500.5", "2501"])  # some tools write integers
@pytest.mark.parametrize("unit", [[], ["--unit", "char"]])
def test_speech_into_characters(folder: Path, capsys: pytest.CaptureFixture[str], length: str, unit: list[str]) -> None:
    """The format of SimulEval with `--eval-latency-unit char`: no spaces, one delay per character."""
    Path("speech.log").write_text(SPEECH % ("你好世界", length), encoding="utf-8")
    found = scored(capsys, "speech.log", "--tokenize", "zh", *unit)
    assert found["unit"] == "ms"
    assert found["scores"]["BLEU"] == pytest.approx(100)
    assert found["scores"]["AL_ref"] == found["scores"]["AL"]  # both have four characters
    Path("words.log").write_text(SPEECH % ("Hal lo W elt", length), encoding="utf-8")
    assert "AL_ref" not in scored(capsys, "words.log")["scores"]  # the number of reference words is unknown
    if unit:
        assert "LAAL" in scored(capsys, "words.log", *unit)["scores"]


def test_latin_speech_counted_in_characters(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The reference is counted in the same unit as the output."""
    line = SPEECH.replace("你好世界", "to be") % ("ab cd", 2500.5)
    Path("latin.log").write_text(line, encoding="utf-8")  # four delays, four letters
    found = scored(capsys, "latin.log")["scores"]
    assert found["AL_ref"] == found["AL"]  # both have four characters
    assert found["BLEU"] == scored(capsys, "latin.log", "--unit", "char")["scores"]["BLEU"]
    assert [trace.text() for trace in logs.read("latin.log")] == ["ab cd"]
    Path("words.log").write_text(line.replace("[1000.0, 1000.0, 2000.5, 2500.5]", "[1000.0, 2500.5]").replace(
        "[1100, 1100, 2200, 2900]", "[1100, 2900]"), encoding="utf-8")  # fmt: skip
    found = scored(capsys, "words.log", "--unit", "char")["scores"]
    assert found["AL_ref"] == found["AL"]
    logs.write(logs.read("latin.log"), "again.jsonl", "trace")
    assert scored(capsys, "again.jsonl")["scores"] == pytest.approx(scored(capsys, "latin.log")["scores"])


def test_a_reference_of_one_character_is_not_a_word(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs.write([Trace(2, (1, 2), target=("你", "好")), Trace(1, (1,), target=("好",))], "zh.jsonl", "trace")
    Path("ref.zh").write_text("你好吗？\n好。\n", encoding="utf-8")
    found = scored(capsys, "zh.jsonl", "--reference", "ref.zh", "--tokenize", "zh")
    assert "AL_ref" not in found["scores"]
    assert "length:hypothesis" in found["signatures"]["LAAL"]
    Path("ref.zh").write_text("你 好 吗 ？\n好。\n", encoding="utf-8")
    found = scored(capsys, "zh.jsonl", "--reference", "ref.zh", "--tokenize", "zh")
    assert "length:longer(1)" in found["signatures"]["LAAL"]


def test_chinese_references_use_the_chinese_tokenizer(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = Trace(3, (1, 2, 3, 3), source=("I", "am", "fine"), target=("我", "现在", "很", "好。"))
    logs.write([said], "zh.jsonl", "trace")
    logs.write([replace(said, reference="我现在很好。")], "own.jsonl", "trace")
    (folder / "ref.zh").write_text("我现在很好。\n", encoding="utf-8")
    for arguments in (["zh.jsonl", "--reference", "ref.zh"], ["own.jsonl"]):
        found = scored(capsys, *arguments)
        assert found["scores"]["BLEU"] == pytest.approx(100)
        assert "tok:zh" in found["signatures"]["BLEU"]
    own = [Trace(0, ()), Trace(1, (1,), target=("OK",), reference="OK"), replace(said, reference="我现在很好。")]
    for first in (own[0], own[1]):
        logs.write([first, own[2]], "own.jsonl", "trace")
        assert "tok:zh" in scored(capsys, "own.jsonl")["signatures"]["BLEU"], "the first sentence does not decide"
    assert scored(capsys, "zh.jsonl", "--reference", "ref.zh", "--tokenize", "13a")["scores"]["BLEU"] < 1
    assert "tok:13a" in scored(capsys, "ours.jsonl", "--reference", "ref.en")["signatures"]["BLEU"]


def test_pipe_and_light_import() -> None:
    """From stdin, in a separate process, without torch and matplotlib."""
    program = (
        "import sys; from stacl.__main__ import main; code = main(['score', '-', '--json']); "
        "sys.exit(code or ('torch' in sys.modules) * 3 or ('matplotlib' in sys.modules) * 4)"
    )
    done = subprocess.run([sys.executable, "-c", program], input="0 1 0 1\n", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["scores"]["AL"] == 1


@pytest.mark.parametrize("lines", ["i am well .\n\n", "\nwhere are you now\n"])
@pytest.mark.parametrize("name", ["out.jsonl", "out.log"])
def test_an_exported_log_with_an_empty_reference_scores_the_same(
    folder: Path, capsys: pytest.CaptureFixture[str], lines: str, name: str
) -> None:
    (folder / "gap.en").write_text(lines)
    given = scored(capsys, "ours.jsonl", "--reference", "gap.en", "--export", name)
    carried = scored(capsys, name)
    assert "undefined:1" in given["signatures"]["AL_ref"]
    assert carried["scores"] == given["scores"]
    assert carried["signatures"] == given["signatures"]
