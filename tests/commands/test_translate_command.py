"""`stacl translate` as a separate process: pipes, signals and mistakes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from stacl.__main__ import main
from stacl.api import load
from stacl.commands import _input
from stacl.engines.onnx import OnnxEngine
from stacl.live.translator import Translator
from stacl.policies.base import policy
from stacl.runs import pretrained
from stacl.support.errors import UserError
from stacl.traces import logs
from tests.commands.live_process import LINES, TIMEOUT, command, environment, errors_of, piped, session_output
from tests.conftest import stacl

pytestmark = pytest.mark.slow


def test_a_word_is_written_before_its_line_or_the_input_ends(copy_run: Path) -> None:
    """Every word is written while the process waits for the next one: nothing is buffered."""
    first, second = LINES[:2]
    with piped(copy_run, "--policy", "wait-k:1") as live:
        for heard, word in enumerate(first.split(), start=1):
            live.send(word[:2])
            live.send(word[2:] + " ")
            so_far = " ".join(first.split()[:heard])
            assert live.read_until(f"{so_far}$") == so_far
        live.send("\n")
        assert live.read_until("\n$") == first + "\n"
        live.send(second)
        assert live.process.stdin is not None
        live.process.stdin.close()
        assert live.rest() == f"{first}\n{second}\n"
        assert live.process.wait(TIMEOUT) == 0
        assert errors_of(live) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("\n", "\n"),
        (f"\n\n{LINES[0]}\n \t\n{LINES[1]}\n\n", f"\n\n{LINES[0]}\n\n{LINES[1]}\n\n"),
        (f"{LINES[0]}\r\n{LINES[1]}", f"{LINES[0]}\n{LINES[1]}\n"),
    ],
)
def test_one_output_line_per_input_line(copy_run: Path, text: str, expected: str) -> None:
    done = stacl("translate", copy_run, input=text)
    assert (done.stdout, done.stderr, done.returncode) == (expected, "", 0)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_waiting_finishes_the_sentence(babbler: Path, sent: Any) -> None:
    words = LINES[1].split()[:5]
    before, due = session_output(babbler, words, "wait-k:3")
    assert (len(before), len(due) > 3) == (3, True)
    expected = " ".join(before + due)
    with piped(babbler, "--policy", "wait-k:3") as live:
        live.send(" ".join(words) + " ")
        live.read_until(re.escape(" ".join(before)) + "$")  # words 3, 4 and 5 have arrived
        live.process.send_signal(sent)
        assert live.rest() == expected + "\n"
        assert live.process.wait(TIMEOUT) == 128 + sent
        assert errors_of(live) == ""


def test_a_signal_while_computing_stops_between_two_words(copy_run: Path, tmp_path: Path) -> None:
    """With a file there is no waiting, so the signal arrives while a word is computed."""
    text, log = tmp_path / "long.txt", tmp_path / "log.jsonl"
    text.write_text("\n".join(LINES * 500) + "\n")
    with piped(copy_run, text, "--policy", "wait-k:1", "--trace", log) as live:
        live.read_until("(?s)\n.*\n.*\n")
        live.process.send_signal(signal.SIGINT)
        said = live.rest()
        assert live.process.wait(TIMEOUT) == 130
        assert errors_of(live) == ""
    lines = said.splitlines()
    assert said.endswith("\n")
    assert 3 <= len(lines) < 500 * len(LINES)
    assert lines[:-1] == (LINES * 500)[: len(lines) - 1]
    *_, last = logs.read(log, "trace")
    heard = " ".join(last.source)
    assert (LINES * 500)[len(lines) - 1].startswith(heard)
    assert lines[-1] == " ".join(last.target)


def test_a_second_signal_stops_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the middle of a beam step, after which the sentence cannot continue."""
    text = tmp_path / "one.de"
    text.write_text("Ein Mann und zwei Kinder, die am Strand mit einem Hund spielen.\n")
    write, steps = OnnxEngine.write, iter(range(1, 1000))

    def interrupted(self: Any, *arguments: Any) -> Any:
        if next(steps) in (6, 9):
            os.kill(os.getpid(), signal.SIGINT)
        return write(self, *arguments)

    monkeypatch.setattr(OnnxEngine, "write", interrupted)
    arguments = ["translate", "photos-de-en", text, "--policy", "full", "--whole-lines"]
    assert main([str(argument) for argument in arguments]) == 130
    assert capsys.readouterr().err == ""


def test_a_non_blocking_output_is_made_blocking(copy_run: Path) -> None:
    """When a non-blocking pipe is full, Python would silently drop the rest."""
    ours, theirs = os.pipe()
    try:
        os.set_blocking(theirs, False)
        subprocess.run(command(copy_run), input=LINES[0].encode(), stdout=theirs, env=environment(), check=True)
        assert os.get_blocking(theirs)
        assert os.read(ours, 1000).decode() == f"{LINES[0]}\n"
    finally:
        os.close(ours)
        os.close(theirs)


def test_traces_hold_words_delays_and_times(copy_run: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    done = stacl("translate", copy_run, "--policy", "wait-k:2", "--trace", log, input="\n".join(LINES[:3]) + "\n")
    assert done.returncode == 0
    traces = list(logs.read(log, "trace"))
    assert [" ".join(trace.source) for trace in traces] == LINES[:3]
    assert [" ".join(trace.target) for trace in traces] == done.stdout.splitlines()
    for trace in traces:
        assert trace.policy == "wait-k:2"
        assert len(trace.read_times) == len(trace.source)
        assert len(trace.write_times) == len(trace.target)
        assert list(trace.write_times) == sorted(trace.write_times)
        for delay, shown in zip(trace.delays, trace.write_times, strict=True):
            assert shown >= trace.read_times[delay - 1]
        assert 0 < trace.compute_seconds <= trace.write_times[-1] + 1


def test_a_file_has_no_speaker_and_an_empty_line_is_a_sentence(copy_run: Path, tmp_path: Path) -> None:
    text, log = tmp_path / "text", tmp_path / "log.jsonl"
    text.write_text(f"{LINES[0]}\n\n{LINES[1]}\n", encoding="utf-8")
    done = stacl("translate", copy_run, text, "--whole-lines", "--trace", log)
    assert done.stdout == text.read_text(encoding="utf-8")
    first, empty, last = logs.read(log, "trace")
    assert (empty.source_length, empty.delays) == (0, ())
    assert " ".join(last.source) == LINES[1]
    assert not first.read_times
    assert not first.write_times
    assert first.compute_seconds > 0


def test_the_trace_never_overwrites_the_text(copy_run: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text(f"{LINES[0]}\n")
    (tmp_path / "link").symlink_to(text)
    with text.open() as piped_in:
        for arguments, standard_input in (
            ((text, "--trace", text), None),
            ((text, "--trace", tmp_path / "link"), None),
            (("--trace", text), piped_in),
        ):
            done = stacl("translate", copy_run, *arguments, stdin=standard_input)
            assert done.returncode == 2
            assert "is the text to translate" in done.stderr
    assert text.read_text() == f"{LINES[0]}\n"


def test_a_replacement_character_in_the_text_is_utf8(copy_run: Path) -> None:
    done = stacl("translate", copy_run, input=f"{LINES[0]} \ufffd\n")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("trained", "expected"),
    [
        ("wait-k:1-inf", "confidence:2-6"),
        ("wait-k:2-6", "confidence:2-6"),
        ("wait-k:3-9", None),
        ("wait-k:1-5", None),
        ("wait-k:1-inf,unit=piece", None),
        ("wait-k:1-inf,c=0.2", None),
        ("full", None),
    ],
)
def test_only_a_model_for_all_lags_is_adaptive_by_default(trained: str, expected: str | None) -> None:
    shipped = load("photos-de-en")
    manifest = msgspec.structs.replace(shipped.manifest, policy=trained)
    translator = Translator(manifest, shipped.engine, shipped.source_pieces, shipped.target_pieces)
    assert str(translator.live_policy) == (expected or str(policy(trained).decoding_policy()))


def test_the_default_policy_of_a_model_for_every_k_is_adaptive(copy_run: Path, tmp_path: Path) -> None:
    for model, expected in ((pretrained.folder("photos-de-en"), "confidence:2-6"), (copy_run, "wait-k:1")):
        log = tmp_path / f"{model.name}.jsonl"
        done = stacl("translate", model, "--trace", log, input=f"{LINES[0]}\n")
        assert done.returncode == 0, done.stderr
        assert [trace.policy for trace in logs.read(log, "trace")] == [expected]


def test_pace_simulates_a_speaker(copy_run: Path, tmp_path: Path) -> None:
    log, (line, *_) = tmp_path / "log.jsonl", LINES
    done = stacl("translate", copy_run, "--policy", "wait-k:1", "--pace", 0.2, "--trace", log, input=line)
    assert done.stdout == line + "\n"
    (trace,) = logs.read(log, "trace")
    gaps = [later - earlier for earlier, later in zip(trace.read_times, trace.read_times[1:], strict=False)]
    assert min(gaps) >= 0.2
    assert trace.read_times[0] == pytest.approx(0.2, abs=0.1), "the speaker began before the first word had come"
    assert trace.compute_seconds < trace.read_times[-1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["{tmp}/nothing"], "no model {tmp}/nothing: expected a folder that `stacl train` or `stacl export` made"),
        (["{run}", "{tmp}/nothing.txt"], "{tmp}/nothing.txt cannot be read: No such file or directory"),
        (["{run}", "{tmp}"], "{tmp} cannot be read: Is a directory"),
        (["{run}", "--policy", "wait-q:3"], "no policy is called 'wait-q'; did you mean wait-k?"),
        (["{run}", "--policy", "wait-k:many"], "k must be a whole number from 1, or inf, not 'many'"),
        (["{run}", "--beam", "0"], "the beam must be from 1 to 100, not 0"),
        (["{run}", "--beam", "100000"], "the beam must be from 1 to 100"),
        (["{run}", "--ahead", "100000"], "the look-ahead must be from 0 to 100"),
        (["{run}", "--trace", "-"], "--trace needs a file"),
        ([""], "name of the model is empty"),
        (["{tmp}"], "{tmp} is not a model"),
        (["-"], "- is not a model. Usage: stacl translate MODEL FILE"),
        (["{run}/config.toml"], "config.toml is not a model. Usage"),
        (["{run}", "--beam", "1", "--ahead", "2"], "a look-ahead requires a beam of 2 or more"),
        (["{run}", "--pace", "-1"], "--pace must be from 0 to 3600 seconds, not -1"),
        (["{run}", "--pace", "nan"], "--pace must be from 0 to 3600 seconds, not nan"),
        (["{run}", "--trace", "{tmp}/no/log"], "--trace {tmp}/no/log cannot be written: No such file"),
        (["{run}", "--trace", "/dev/full"], "--trace /dev/full cannot be written: No space left on device"),
        (["{run}", "--polic", "wait-k:3", "--paces", "3"], "unknown option --paces; did you mean --pace?"),
    ],
)
def test_mistakes_are_one_line(copy_run: Path, tmp_path: Path, options: list[str], message: str) -> None:
    def named(text: str) -> str:
        return text.format(run=copy_run, tmp=tmp_path)

    done = stacl("translate", *map(named, options), input=LINES[0])
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("stacl translate: ")
    assert named(message) in done.stderr


def test_odd_text_keeps_its_number_of_lines(copy_run: Path, tmp_path: Path) -> None:
    odd = [b"\xff\xfe sch\xf6n \xf0\x9f", b"\x00\x07 \x1b[31m\x7f", "😀 👩‍👩‍👧 🇩🇪".encode(), b"x" * 10_000]
    odd += ["שלום مرحبا".encode(), "我们在学习。".encode(), "▁baba▁ ▁".encode(), b"baba. Befe! 3. Mal", b"\xc2"]
    log = tmp_path / "log.jsonl"
    done = subprocess.run(
        command(copy_run, "--trace", log),
        input=b"\n".join(odd),
        capture_output=True,
        env=environment(PYTHONIOENCODING="ascii"),
    )
    assert done.returncode == 0
    assert done.stderr.startswith(b"stacl translate: line 1 is not UTF-8")
    assert done.stderr.count(b"\n") == 1
    assert done.stdout.endswith(b"\n")
    assert len(done.stdout.decode("utf-8").split("\n")) == len(odd) + 1
    heard = "".join(word for trace in logs.read(log, "trace") for word in trace.source)
    assert heard.count("x") == 10_000
    assert "👩‍👩‍👧" in heard


@pytest.mark.parametrize(("model", "text", "encoding"), [("de-en", "schön", "latin1"), ("zh-en", "你好", "gb18030")])
def test_text_that_is_not_utf8_gets_an_encoding_suggestion(model: str, text: str, encoding: str) -> None:
    done = subprocess.run(command(model), input=text.encode(encoding), capture_output=True, env=environment())
    assert done.returncode == 0
    assert f"iconv -f {encoding} -t utf-8".encode() in done.stderr


def test_a_closed_output_pipe_is_not_an_error(copy_run: Path, tmp_path: Path) -> None:
    text = tmp_path / "long.txt"
    text.write_text("\n".join(LINES * 100) + "\n")
    with piped(copy_run, text, "--policy", "wait-k:1") as live:
        live.read_until("\n")
        assert live.process.stdout is not None
        live.process.stdout.close()  # like `| head -1`
        assert live.process.wait(TIMEOUT) == 141
        assert errors_of(live) == ""


def test_a_non_blocking_input_is_read() -> None:
    """Another process may have made a shared pipe or terminal non-blocking."""
    ear, mouth = os.pipe()
    os.set_blocking(ear, False)
    stop: Any = SimpleNamespace(waiting=contextlib.nullcontext)
    later = threading.Timer(0.3, os.write, (mouth, b"Ein Hund"))
    later.start()
    assert _input.wait_for(ear, 100, stop) == b"Ein Hund"
    os.close(mouth)
    assert _input.wait_for(ear, 100, stop) == b""
    os.close(ear)
    with pytest.raises(UserError, match="the input cannot be read: Bad file descriptor"):
        _input.wait_for(ear, 100, stop)
