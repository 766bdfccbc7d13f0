"""Mistakes with `stacl score`: one line, exit code 2, no partial output."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stacl.__main__ import main
from stacl.traces import logs
from stacl.traces.trace import Trace
from tests.commands.score.conftest import REVISED


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "cannot read nowhere: No such file or directory"),
        (["empty"], "empty is empty"),
        (["broken.jsonl"], "broken.jsonl:3: not valid JSON"),
        (["back.jsonl"], "back.jsonl:2: delays decrease"),
        (["ours.jsonl", "--reference", "short.en"], "short.en has 1 lines, but there are 2 sentences"),
        (["ours.jsonl", "--reference", "latin1.en"], "latin1.en:1: not UTF-8"),
        (["ours.jsonl", "--comet"], "COMET needs references"),
        (["ours.jsonl", "--reference", "ref.en", "--tokenize", "chinese"], "no tokenizer 'chinese'"),
        (["ours.jsonl", "--reference", "ref.en", "--tokenize", "ja-mecab"], "'ja-mecab' is not available"),
        (["ours.jsonl", "--export", "x.xml"], "the file ending must be one of"),
        (["ours.jsonl", "--intervals", "-3"], "--intervals must be between 0 and 100,000"),
        (["ours.jsonl", "--intervals", "100000000000"], "--intervals must be between 0 and 100,000"),
        (["ours.jsonl", "--source", "short.en"], "short.en has 1 lines, but ours.jsonl has 2 sentences"),
        (["endless.jsonl", "--export", "x.rw"], "sentence 1 has 1,000,000,000,000 source units; the format rw allows"),
        (
            ["spaced.jsonl", "--export", "x.log"],
            "sentence 1 cannot be written in the format simuleval",
        ),
        (["empty-word.jsonl", "--export", "x.log"], "its 2 target units become 1 in a line of text"),
        (["ours.rw", "--unit", "char", "--format", "trace"], "ours.rw:1: not valid JSON"),
        (["ours.jsonl", "--baseline", "one.rw"], "ours.jsonl has 2 sentences, one.rw 1; a paired test needs the same"),
        (["ours.jsonl", "--comet", "--reference", "ref.en"], "COMET"),
        (["nan.log"], "nan.log:1: delays must be a number, not nan"),
        (["late.jsonl"], "sentence 2 has a reference, but those before it have none"),
        (["hole.jsonl"], "hole.jsonl:2: the line is empty"),
        (["signs.jsonl", "--unit", "word"], "has unit 'char' and cannot be counted in 'word'\n"),
        (
            ["ours.jsonl", "--reference", "ref.en", "--baseline", "one.rw"],
            "--baseline one.rw: ref.en has 2 lines, but there are 1 sentences",
        ),
        (
            ["clock.jsonl"],
            "clock.jsonl:1: write_times decrease: entry 2 is 0.2 after 0.5",
        ),
    ],
)
def test_mistakes_end_with_2_and_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    Path("empty").touch()
    Path("one.rw").write_text("01\n", encoding="utf-8")
    Path("broken.jsonl").write_text('{"source_length": 1, "delays": [1]}\n' * 2 + "{\n", encoding="utf-8")
    Path("back.jsonl").write_text(
        '{"source_length": 1, "delays": [1]}\n{"source_length": 2, "delays": [2, 1]}\n', encoding="utf-8"
    )
    Path("hole.jsonl").write_text('{"source_length": 1, "delays": [1]}\n\n', encoding="utf-8")
    logs.write([Trace(1, (1,), target=("好",), unit="char")], "signs.jsonl", "trace")
    Path("clock.jsonl").write_text(REVISED.replace("0.9", "0.2"))
    Path("nan.log").write_text('{"prediction": "a", "delays": [NaN], "source_length": 1}\n')
    late = Trace(1, (1,), target=("a",))
    logs.write([late, replace(late, reference="a")], "late.jsonl", "trace")
    Path("endless.jsonl").write_text('{"source_length": 1000000000000, "delays": [1]}\n')
    logs.write([Trace(1, (1, 1), target=("a b", "c"))], "spaced.jsonl", "trace")
    logs.write([Trace(1, (1, 1), target=("", "c"))], "empty-word.jsonl", "trace")
    Path("short.en").write_text("i am well .\n", encoding="utf-8")
    Path("latin1.en").write_bytes("schön\nso\n".encode("latin-1"))
    assert main(["score", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


@pytest.mark.parametrize("arguments", [["x", "--unit", "wrod"], ["x", "--format", "xml"], ["x", "--jsn"], []])
def test_unknown_values_end_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["score", *arguments])
    assert end.value.code == 2
