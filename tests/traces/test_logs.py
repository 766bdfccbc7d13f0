"""Logs: three formats, what goes out comes back, and what is wrong is said with file and line."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stacl.metrics import measure
from stacl.support.errors import UserError
from stacl.traces import logs
from stacl.traces.trace import Trace
from tests.conftest import ROOT

SIMULEVAL_LOG = ROOT / "tests" / "metrics" / "simuleval_instances.log"
HERE = [
    Trace(3, (1, 2, 3), source=("x", "y", "z"), target=("a", "b", "c"), reference="a b d"),
    Trace(2, (2,), source=("u", "v"), target=("e",), write_times=(1.5,), reference="e f"),
]


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes | str], Path]:
    def make(content: bytes | str) -> Path:
        path = tmp_path / "log"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


@pytest.mark.parametrize("text", ["0 0 1 0 1", "00101", "R R W R W", "rrwrw", "0\t0 1\t01"])
@pytest.mark.parametrize("end", ["\n", "\r\n", ""])
def test_read_write_strings(file: Callable[[bytes | str], Path], text: str, end: str) -> None:
    assert list(logs.read(file(text + end))) == [Trace(3, (2, 3))]


def test_reads_after_the_last_write_count_as_source(file: Callable[[bytes | str], Path]) -> None:
    assert list(logs.read(file("RWRR\n"))) == [Trace(3, (1,))]


@given(st.lists(st.text("RW", min_size=1, max_size=30), min_size=1))
def test_read_write_strings_round_trip(paths: list[str]) -> None:
    traces = [logs.READERS["rw"]()(path.encode(), "word") for path in paths]
    assert [trace.actions() for trace in traces] == paths


@pytest.mark.parametrize("format", ["trace", "simuleval"])
def test_what_goes_out_comes_back(tmp_path: Path, format: str) -> None:
    path = tmp_path / "log"
    assert logs.write(HERE, path, format) == 2
    assert list(logs.read(path)) == HERE
    assert list(logs.read(path, format)) == HERE


def test_rw_keeps_the_path(tmp_path: Path) -> None:
    path = tmp_path / "log"
    logs.write(HERE, path, "rw")
    assert [trace.delays for trace in logs.read(path)] == [trace.delays for trace in HERE]


def test_a_log_that_simuleval_wrote() -> None:
    """Written by SimulEval 1.1.4 itself with a wait-3 agent; the figures are those that it printed."""
    first, *_ = traces = list(logs.read(SIMULEVAL_LOG))
    assert first.text() == "EIN MANN SCHLÄFT AUF DEM GRÜNEN SOFA ."
    assert first.source[2] == "schläft"
    assert first.reference == "a man is sleeping on the green sofa ."
    scores = measure(traces).scores
    printed = {
        "BLEU": 2.257,
        "AL_ref": 3.093,
        "LAAL": 3.093,
        "AP_ref": 0.732,
        "DAL": 3,
        "StartOffset": 3,
        "EndOffset": 0,
    }
    for name, value in printed.items():
        assert scores[name] == pytest.approx(value, abs=0.0005), name
    # It printed 0.0 for ATD, and 3.0 when it was run again without --output.
    assert scores["ATD"] == pytest.approx(3)


def test_a_folder_stands_for_its_log(tmp_path: Path) -> None:
    (tmp_path / "instances.log").write_bytes(SIMULEVAL_LOG.read_bytes())
    assert list(logs.read(tmp_path)) == list(logs.read(SIMULEVAL_LOG))


def _instance(prediction: str, delays: list[Any], **fields: object) -> str:
    return json.dumps({"index": 0, "prediction": prediction, "delays": delays, "source_length": 3} | fields) + "\n"


def test_simuleval_unit_is_seen_from_the_counts(file: Callable[[bytes | str], Path]) -> None:
    """The first line fits words and characters alike; the second decides, for both."""
    traces = list(logs.read(file(_instance("好", [1]) + _instance("你好", [1, 2], index=1))))
    assert [trace.unit for trace in traces] == ["char", "char"]
    assert traces[1].target == ("你", "好")
    assert [trace.unit for trace in logs.read(file(_instance("a", [1])))] == ["word"]
    pieces = _instance("hello", [1, 2], prediction_spm=["hel", "lo"])
    assert next(logs.read(file(pieces))).target == ("hel", "lo")


def test_simuleval_speech_log_counts_milliseconds(file: Callable[[bytes | str], Path]) -> None:
    line = _instance("a b", [1000.0, 2500.6], source_length=2500.6, source=["a.wav"], elapsed=[1100.0, 2900.0])
    trace = next(logs.read(file(line)))
    assert (trace.unit, trace.source_length, trace.delays) == ("ms", 2501, (1000, 2501))
    assert trace.write_times == (1.1, 2.9)
    assert measure([trace]).scores["AL_CA"] == pytest.approx((1100 + 2900 - 2501 / 2) / 2)


@pytest.mark.parametrize("elapsed", [{}, {"elapsed": [0.0, 0.0]}])
def test_a_text_log_without_a_source_may_have_points_in_its_numbers(
    file: Callable[[bytes | str], Path], elapsed: dict[str, Any]
) -> None:
    """As it looks after a way through a table."""
    line = {"prediction": "a b", "delays": [1.0, 3.0], "source_length": 3.0} | elapsed
    assert list(logs.read(file(json.dumps(line)))) == [Trace(3, (1, 3), target=("a", "b"))]
    for speech in ({"elapsed": [400.0, 3100.0]}, {"source_length": 3.5}, {"delays": [1.0, 2.5]}, {"source": ["a.wav"]}):
        assert [trace.unit for trace in logs.read(file(json.dumps(line | speech)))] == ["ms"]


def test_a_speech_log_written_again_counts_milliseconds_still(
    file: Callable[[bytes | str], Path], tmp_path: Path
) -> None:
    line = _instance("a b", [1000.0, 2500.0], source_length=2500.0, source=["a.wav"], elapsed=[1100.0, 2900.0])
    logs.write(list(logs.read(file(line))), tmp_path / "again.log", "simuleval")
    again = next(logs.read(tmp_path / "again.log"))
    assert (again.unit, again.source_length, again.delays) == ("ms", 2500, (1000, 2500))


def test_a_recording_is_no_word(file: Callable[[bytes | str], Path]) -> None:
    """Whole milliseconds, and a name for a source, also of a part of a file."""
    speech = {"source_length": 3000, "elapsed": [1100, 2200, 3300]}
    for name in ("/x/a.wav", "b.FLAC", "talks/c.wav:1600:48000", "my talk.mp3"):
        trace = next(logs.read(file(_instance("a b c", [1000, 2000, 3000], source=name, **speech))))
        assert (trace.unit, trace.source_length) == ("ms", 3000)
    for words in ("open a.wav now", "", "x y"):
        assert next(logs.read(file(_instance("a b c", [1, 2, 3], source=words, elapsed=[5, 6, 7])))).unit == "word"


def test_the_end_that_simuleval_1_0_counts_is_no_word(
    file: Callable[[bytes | str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [_instance("a b c d e", [3, 4, 5, 6, 6], source_length=5, index=number) for number in range(2)]
    assert [trace.delays for trace in logs.read(file("".join(lines)))] == [(3, 4, 5, 5, 5)] * 2
    assert capsys.readouterr().err == "stacl: this log counts the end of the source as a word; it is not counted here\n"
    with pytest.raises(UserError, match="delay 7 of target unit 2 exceeds the source length 5"):
        list(logs.read(file(_instance("a b", [3, 7], source_length=5))))


def test_real_simuleval_reads_ours(tmp_path: Path) -> None:
    from simuleval.evaluator import instance
    from simuleval.evaluator.scorers.latency_scorer import LATENCY_SCORERS_DICT

    logs.write(HERE, tmp_path / "instances.log", "simuleval")
    lines = (tmp_path / "instances.log").read_text(encoding="utf-8").splitlines()
    read = {number: instance.LogInstance(line) for number, line in enumerate(lines)}
    scores = measure(HERE).scores
    for name, ours in {"AL": "AL_ref", "LAAL": "LAAL", "AP": "AP_ref", "DAL": "DAL"}.items():
        assert LATENCY_SCORERS_DICT[name]()(read) == pytest.approx(scores[ours])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "log is empty; expected one sentence per line"),
        ("0 1\n0 2 1\n", "log:2: expected 0 or R .* found '2'"),
        ("0 1\n\n0 1\n", "log:2: .* the line is empty"),
        ("0 1\n0 é\n", "log:2: expected 0 or R"),
        ("hello world\n", "log:1: cannot detect the format"),
        ('{"source_length": 1, "delays": [1]}\n{"source_length": 1, "del\n', "log:2: not valid JSON"),
        (
            '{"source_length": 3, "delays": [1]}\n{"source_length": 3, "delays": [2, 1]}\n',
            "log:2: delays decrease",
        ),
        (
            '{"source_length": 3, "delays": [4]}\n',
            "log:1: delay 4 of target unit 1 exceeds the source length 3",
        ),
        (b'{"source_length": 1, "delays": [1], "target": ["\xe4"]}\n', "log:1: not UTF-8"),
        (_instance("a b", [1, 2]) + _instance("a b", [2, 1], index=1), "log:2: delays decrease"),
        (_instance("aa b", [1, 2]) + _instance("a b c", [1, 2], index=1), "log:2: target has 3 entries"),
        (_instance("a b", [1, 2, 3, 3]), "log:1: 4 delays, but the prediction has 2 words"),
        ('{"prediction": "a", "delays": [1]}\n', "log:1: the field 'source_length' is missing"),
        (_instance("a b", [1, 2]) + '{"prediction"\n', "log:2: not valid JSON"),
        (_instance("a b", [1, 2]) + '{"prediction": ' + "[" * 100_000 + "\n", "log:2: not valid JSON"),
        ('{"source_length": 1, "delays": [1]}\n{"delays": ' + "[" * 100_000 + "\n", "log:2: not valid JSON"),
        (
            _instance("a b", [1, 2]) + _instance("a b", [1, 2]),
            "log:2: index 0 comes after 0; the log holds two runs",
        ),
        *(
            (_instance("a b", [1, 2], index=index) * 2, "log:2: index 7 comes after 7")
            for index in (7.0, "7")  # as they look after a way through a table
        ),
        (_instance("a b", [1, 2], elapsed=[5]), "log:1: elapsed has 1 entries, but there are 2 delays"),
        ('{"source_length": 1%s, "delays": [1]}\n' % ("0" * 400), "log:1: source_length is a number of 401 digits"),
        (_instance("a b", [1, 2], source_length=1e300, source=""), "log:1: source_length is a number of 301 digits"),
        (
            '{"source_length": 1, "delays": [1], "write_times": [1e308]}\n',
            "log:1: a time of 1e.308 seconds is too long",
        ),
        *(
            (
                _instance("/out/0_pred.wav", [900], **{field: [[0, 80]]}),
                "log:1: logs of speech output are not supported",
            )
            for field in ("durations", "intervals")
        ),
        (_instance("a b", [1.5, 2]), "log:1: 1.5 is not a whole number of words"),
        (_instance("a b", ["x", 2]), "log:1: delays must be a number, not 'x'"),
    ],
)
def test_wrong_input_is_named(file: Callable[[bytes | str], Path], content: str | bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        list(logs.read(file(content)))


def test_missing_file_and_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot read .*nowhere: No such file"):
        list(logs.read(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="unknown format 'simulval'; did you mean simuleval"):
        list(logs.read(tmp_path, "simulval"))
    with pytest.raises(UserError, match="cannot write"):
        logs.write(HERE, tmp_path / "no" / "where", "rw")


def test_byte_order_mark(file: Callable[[bytes | str], Path]) -> None:
    assert list(logs.read(file("\ufeff0 1\n"))) == [Trace(1, (1,))]


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"0 1\n")))
    assert list(logs.read("-")) == [Trace(1, (1,))]


def test_reading_is_lazy(file: Callable[[bytes | str], Path]) -> None:
    """The first sentence is there before the last is looked at: a log of any length fits in memory."""
    reader = logs.read(file("0 1\nwrong\n"))
    assert next(reader) == Trace(1, (1,))


def test_text_lines(file: Callable[[bytes | str], Path]) -> None:
    assert logs.read_lines(file("a b\n\nc \r\n")) == ["a b", "", "c "]
    with pytest.raises(UserError, match="log:2: not UTF-8"):
        logs.read_lines(file(b"a\n\xff\n"))


def test_a_log_of_text_that_went_through_a_table(file: Callable[[bytes | str], Path]) -> None:
    line = _instance("a b", [1.0, 2.0], source_length=2.0, source="x y")
    assert [(trace.unit, trace.delays) for trace in logs.read(file(line))] == [("word", (1, 2))]


def test_a_word_is_shown_after_those_before_it(file: Callable[[bytes | str], Path]) -> None:
    line = _instance("a b", [1000.5, 2000.5], source_length=2500.6, source=["a.wav"], elapsed=[1900.0, 1800.0])
    assert next(logs.read(file(line))).write_times == (1.9, 1.9)


def test_a_trace_that_speaks_of_predictions_is_a_trace(file: Callable[[bytes | str], Path]) -> None:
    line = Trace(2, (1, 2), target=("the", "prediction")).to_json()
    assert next(logs.read(file(line + "\n"))).target == ("the", "prediction")


def test_a_byte_order_mark_is_no_text(file: Callable[[bytes | str], Path]) -> None:
    assert logs.read_lines(file(b"\xef\xbb\xbfEin Hund\r\nEine Katze\n")) == ["Ein Hund", "Eine Katze"]


def test_what_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="sentence 1 has no target words"):
        logs.write([Trace(1, (1,))], tmp_path / "out.log", "simuleval")
    with pytest.raises(UserError, match="sentence 1 has an unpaired surrogate"):
        logs.write([Trace(1, (1,), target=("\ud83d",))], tmp_path / "out.jsonl", "trace")
    with pytest.raises(UserError, match="sentence 1 is empty; the format rw"):
        logs.write([Trace(0, ())], tmp_path / "out.rw", "rw")
    assert not list(tmp_path.iterdir())
