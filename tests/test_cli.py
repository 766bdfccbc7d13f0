"""The command line: fast start, helpful errors and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import stacl as package
from stacl.__main__ import main
from stacl.support import plugins
from stacl.support.errors import suggest
from tests.conftest import ROOT, stacl

VERBS = plugins.names("commands")
# Modules that take seconds to import. The help and `stacl show` must not need them.
HEAVY = ("torch", "matplotlib", "onnxruntime", "sentencepiece", "safetensors", "sacrebleu", "pandas")


def measured(code: str) -> tuple[set[str], float]:
    """Return the heavy modules that some code loads in a new process, and its CPU seconds."""
    ending = (
        "import sys, resource, json\n"
        f"loaded = sorted(set({HEAVY!r}) & set(sys.modules))\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(json.dumps([loaded, used.ru_utime + used.ru_stime]), file=sys.stderr)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code + ending], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    loaded, seconds = json.loads(done.stderr.splitlines()[-1])
    return set(loaded), seconds


def quiet(*arguments: str) -> str:
    return (
        "import contextlib\nfrom stacl.__main__ import main\n"
        f"with contextlib.suppress(SystemExit):\n    main({list(arguments)!r})\n"
    )


@pytest.mark.parametrize(
    "code",
    [
        "import stacl\n",
        "import stacl\nassert stacl.policy('wait-k:3').schedule(6, 7) == [3, 4, 5, 6, 6, 6, 6]\n",
        quiet("--help"),
        quiet("--version"),
        quiet("show", "wait-k:3"),
        quiet("translate", "--help"),
        quiet("train", "--fields"),
        quiet("translate", "/nowhere"),
    ],
)
def test_light_commands_load_nothing_heavy_and_are_quick(code: str) -> None:
    measures = [measured(code)]
    enough = 4 * measured("import numpy\n")[1]  # about half of this is needed; torch alone would take far more
    if measures[0][1] >= enough:  # the machine may be busy
        measures.append(measured(code))
    assert not measures[0][0]
    assert min(seconds for _, seconds in measures) < enough


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: stacl {verb}")
    doc = plugins.module("commands", verb).__doc__
    assert doc is not None
    doc = doc.strip()
    assert doc.splitlines()[0] in shown
    assert f"stacl {verb} " in shown.partition("options:")[0].partition("\n\n")[2], "an example is missing"


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(f"    {verb}" in shown for verb in VERBS)
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"stacl {package.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "stacl: the following arguments are required: VERB (see stacl --help)"),
        (["tanslate"], "stacl: unknown verb 'tanslate'; did you mean translate? (see stacl --help)"),
        (["xyz"], f"stacl: unknown verb 'xyz'; known: {', '.join(VERBS)} (see stacl --help)"),
        (["show", "full", "--sorce", "3"], "stacl show: unknown option --sorce"),
        (
            ["show", "full", "--tgd", "3"],
            "stacl show: unknown option --tgd; did you mean --tgt? (see stacl show --help)",
        ),
        (["show", "full", "--src", "many"], "stacl show: argument --src: invalid int value: 'many'"),
        (["evaluate"], "stacl evaluate: the following arguments are required: MODEL"),
    ],
)
def test_wrong_usage_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith(message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "wait-q:3"], "no policy is called 'wait-q'; did you mean wait-k?"),
        (["show", "wait-k:3", "--src", "-1"], "--src and --tgt must be from 0 to 10000"),
        (["show", "wait-k:3,d=1"], "has no option 'd'"),
        (["train"], "no config; give one"),
        (["data", "multi30"], "did you mean multi30k?"),
        (["score", "/nowhere"], "cannot read /nowhere"),
    ],
)
def test_mistakes_exit_with_2_and_one_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith(f"stacl {arguments[0]}: ")
    assert message in err


def test_a_file_may_follow_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """argparse alone refuses this after a list or an optional argument."""
    text = tmp_path / "text"
    text.write_text("")
    assert main(["translate", "photos-de-en", "--policy", "wait-k:3", str(text)]) == 0
    with pytest.raises(SystemExit, match="2"):
        main(["translate", "photos-de-en", "--policy", "wait-k:3", str(text), "more"])
    assert "unrecognized arguments: more" in capsys.readouterr().err


def test_show_begins_with_g(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "wait-k:3", "--src", "6", "--tgt", "7"]) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first == "3 4 5 6 6 6 6"
    assert second == "RRRWRWRWRWWWW"


def test_python_m_stacl_works() -> None:
    done = stacl("show", "full", "--src", 3, "--tgt", 2)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == "3 3"
    assert stacl("show", "nonsense").returncode == 2
    assert stacl("--version").stdout.startswith("stacl ")


def test_public_names() -> None:
    assert set(package.__all__) <= set(dir(package))
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing


def test_a_closed_output_is_not_an_error() -> None:
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -m stacl show wait-k:3 >&-'], capture_output=True, cwd=ROOT
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("words", ["--version", "show --help", "models de-en", "show wait-k:3 --src 6 --tgt 7"])
def test_output_that_cannot_be_written_is_reported(words: str) -> None:
    """Python flushes its buffer at exit, when errors can no longer be reported."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = f'"{sys.executable}" -m stacl {words}'
    full = subprocess.run(["bash", "-c", f"{command} > /dev/full"], capture_output=True, cwd=ROOT, env=environment)
    said = "stacl" if words == "--version" or "--help" in words else f"stacl {words.split()[0]}"
    assert (full.returncode, full.stderr.decode()) == (2, f"{said}: the disk is full\n")
    gone = f"set -o pipefail; {command} | true"
    left = subprocess.run(["bash", "-c", gone], capture_output=True, cwd=ROOT, env=environment)
    assert left.stderr == b""
    assert left.returncode in (0, 141)  # 0: written before the reader closed the pipe


def test_output_is_utf8_whatever_the_locale() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([sys.executable, "-m", "stacl", "show", "wait-k:3"], capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "■" in done.stdout.decode("utf-8")


def test_file_names_may_have_any_encoding() -> None:
    done = subprocess.run([sys.executable, "-m", "stacl", "score", b"b\xe4d.log"], capture_output=True)
    assert done.returncode == 2
    assert done.stderr == b"stacl score: cannot read b\\udce4d.log: No such file or directory\n"


def test_a_very_long_name_gets_no_suggestion() -> None:
    assert suggest("wait-k" * 100, ["wait-k"]) == ""
