"""`stacl translate` as a process of its own: pipes, signals and mistakes."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from types import SimpleNamespace

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
from tests.commands.live_process import LINES, PATIENCE, command, environment, errors_of, piped, said_by_a_session
from tests.conftest import stacl

pytestmark = pytest.mark.slow


def test_a_word_is_said_before_its_line_or_the_input_ends(copy_run):
    """Every word comes while the process waits for the next: nothing sits in a buffer."""
    first, second = LINES[:2]
    with piped(copy_run, "--policy", "wait-k:1") as live:
        for heard, word in enumerate(first.split(), start=1):
            live.tell(word[:2])
            live.tell(word[2:] + " ")
            so_far = " ".join(first.split()[:heard])
            assert live.hear_until(f"{so_far}$") == so_far
        live.tell("\n")
        assert live.hear_until("\n$") == first + "\n"
        live.tell(second)
        live.process.stdin.close()
        assert live.rest() == f"{first}\n{second}\n"
        assert live.process.wait(PATIENCE) == 0
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
def test_a_line_out_for_a_line_in(copy_run, text, expected):
    done = stacl("translate", copy_run, input=text)
    assert (done.stdout, done.stderr, done.returncode) == (expected, "", 0)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_told_to_end_while_waiting_it_says_what_is_due(babbler, sent):
    words = LINES[1].split()[:5]
    before, due = said_by_a_session(babbler, words, "wait-k:3")
    assert (len(before), len(due) > 3) == (3, True)
    expected = " ".join(before + due)
    with piped(babbler, "--policy", "wait-k:3") as live:
        live.tell(" ".join(words) + " ")
        live.hear_until(re.escape(" ".join(before)) + "$")  # so words 3, 4 and 5 have come
        live.process.send_signal(sent)
        assert live.rest() == expected + "\n"
        assert live.process.wait(PATIENCE) == 128 + sent
        assert errors_of(live) == ""


def test_interrupted_at_work_it_ends_between_two_words(copy_run, tmp_path):
    """A file leaves no moment of waiting: the signal comes while a word is computed, and harms none."""
    text, log = tmp_path / "long.txt", tmp_path / "log.jsonl"
    text.write_text("\n".join(LINES * 500) + "\n")
    with piped(copy_run, text, "--policy", "wait-k:1", "--trace", log) as live:
        live.hear_until("(?s)\n.*\n.*\n")
        live.process.send_signal(signal.SIGINT)
        said = live.rest()
        assert live.process.wait(PATIENCE) == 130
        assert errors_of(live) == ""
    lines = said.splitlines()
    assert said.endswith("\n")
    assert 3 <= len(lines) < 500 * len(LINES)
    assert lines[:-1] == (LINES * 500)[: len(lines) - 1]
    *_, last = logs.read(log, "trace")
    heard = " ".join(last.source)
    assert (LINES * 500)[len(lines) - 1].startswith(heard)
    assert lines[-1] == " ".join(last.target)


def test_interrupted_twice_it_ends_at_once(monkeypatch, tmp_path, capsys):
    """In the middle of a beam's step, from which the sentence cannot go on."""
    text = tmp_path / "one.de"
    text.write_text("Ein Mann und zwei Kinder, die am Strand mit einem Hund spielen.\n")
    write, steps = OnnxEngine.write, iter(range(1, 1000))

    def interrupted(self, *arguments):
        if next(steps) in (6, 9):
            os.kill(os.getpid(), signal.SIGINT)
        return write(self, *arguments)

    monkeypatch.setattr(OnnxEngine, "write", interrupted)
    arguments = ["translate", "photos-de-en", text, "--policy", "full", "--whole-lines"]
    assert main([str(argument) for argument in arguments]) == 130
    assert capsys.readouterr().err == ""


def test_a_pipe_that_does_not_wait_is_made_to(copy_run):
    """Its writer is told that there is no room, and Python would drop the rest without a word."""
    ours, theirs = os.pipe()
    try:
        os.set_blocking(theirs, False)
        subprocess.run(command(copy_run), input=LINES[0].encode(), stdout=theirs, env=environment(), check=True)
        assert os.get_blocking(theirs)
        assert os.read(ours, 1000).decode() == f"{LINES[0]}\n"
    finally:
        os.close(ours)
        os.close(theirs)


def test_traces_hold_words_delays_and_times(copy_run, tmp_path):
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


def test_a_file_has_no_speaker_and_an_empty_line_is_a_sentence(copy_run, tmp_path):
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


def test_the_trace_never_goes_over_the_text(copy_run, tmp_path):
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


def test_a_replacement_character_that_was_written_is_utf8(copy_run):
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
def test_only_a_model_for_all_these_lags_is_adaptive_by_itself(trained, expected):
    shipped = load("photos-de-en")
    manifest = msgspec.structs.replace(shipped.manifest, policy=trained)
    translator = Translator(manifest, shipped.engine, shipped.source_pieces, shipped.target_pieces)
    assert str(translator.live_policy) == (expected or str(policy(trained).decoding_policy()))


def test_without_a_policy_a_model_for_every_k_waits_only_where_it_must(copy_run, tmp_path):
    for model, expected in ((pretrained.folder("photos-de-en"), "confidence:2-6"), (copy_run, "wait-k:1")):
        log = tmp_path / f"{model.name}.jsonl"
        done = stacl("translate", model, "--trace", log, input=f"{LINES[0]}\n")
        assert done.returncode == 0, done.stderr
        assert [trace.policy for trace in logs.read(log, "trace")] == [expected]


def test_pace_makes_a_speaker(copy_run, tmp_path):
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
def test_mistakes_are_one_line(copy_run, tmp_path, options, message):
    def named(text: str) -> str:
        return text.format(run=copy_run, tmp=tmp_path)

    done = stacl("translate", *map(named, options), input=LINES[0])
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("stacl translate: ")
    assert named(message) in done.stderr


def test_odd_text_has_as_many_lines_as_before(copy_run, tmp_path):
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
def test_what_is_not_utf8_is_told_what_it_may_be(model, text, encoding):
    done = subprocess.run(command(model), input=text.encode(encoding), capture_output=True, env=environment())
    assert done.returncode == 0
    assert f"iconv -f {encoding} -t utf-8".encode() in done.stderr


def test_a_reader_that_leaves_is_no_error(copy_run, tmp_path):
    text = tmp_path / "long.txt"
    text.write_text("\n".join(LINES * 100) + "\n")
    with piped(copy_run, text, "--policy", "wait-k:1") as live:
        live.hear_until("\n")
        live.process.stdout.close()  # as `| head -1` does
        assert live.process.wait(PATIENCE) == 141
        assert errors_of(live) == ""


def test_an_input_that_does_not_wait_is_waited_for():
    """Whoever shares a pipe or a terminal may have made it so."""
    ear, mouth = os.pipe()
    os.set_blocking(ear, False)
    stop = SimpleNamespace(waiting=contextlib.nullcontext)
    later = threading.Timer(0.3, os.write, (mouth, b"Ein Hund"))
    later.start()
    assert _input.wait_for(ear, 100, stop) == b"Ein Hund"
    os.close(mouth)
    assert _input.wait_for(ear, 100, stop) == b""
    os.close(ear)
    with pytest.raises(UserError, match="the text cannot be read: Bad file descriptor"):
        _input.wait_for(ear, 100, stop)
