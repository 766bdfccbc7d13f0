"""The agent in the real SimulEval: the same words, delays and scores as with `stacl evaluate`."""

from __future__ import annotations

import argparse
import csv
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stacl import api
from stacl.__main__ import main
from stacl.corpora.base import corpus
from stacl.decoding.options import Decoding
from stacl.support.errors import UserError
from stacl.traces import logs
from tests.conftest import ROOT

pytestmark = pytest.mark.slow
SOURCES = [source for source, _ in corpus("copy").open("test")][:12]
# The lengths differ from the sources, so that using the wrong length shows.
REFERENCES = [" ".join(source.split()[1:] or ["baba"]) for source in SOURCES]
WAYS = {
    "file": ("--agent", ROOT / "stacl" / "interop" / "simuleval.py"),
    "class": ("--agent-class", "stacl.interop.simuleval.StaclAgent"),
}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    source, reference = tmp_path / "source.txt", tmp_path / "reference.txt"
    source.write_text("\n".join(SOURCES) + "\n")
    reference.write_text("\n".join(REFERENCES) + "\n")
    return source, reference


def simuleval(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "simuleval.cli", *map(str, arguments), "--no-progress-bar"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize(
    ("way", "spec", "beam", "ahead"),
    [
        ("file", "wait-k:1", 1, 0),
        ("file", "wait-k:2,c=0.25", 1, 0),
        ("class", "wait-k:1,c=0.5", 3, 1),
        ("class", "wait-k:3,unit=piece", 1, 0),
    ],
)
def test_the_same_words_delays_and_scores(
    copy_run: Path,
    files: tuple[Path, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    way: str,
    spec: str,
    beam: int,
    ahead: int,
) -> None:
    source, reference = files
    out = tmp_path / "simuleval"
    common = ("--source", source, "--policy", spec, "--beam", beam, "--ahead", ahead)
    done = simuleval(*WAYS[way], "--model", copy_run, *common, "--target", reference, "--output", out)
    assert done.returncode == 0, done.stderr
    theirs = list(logs.read(out, "simuleval"))
    ours = api.load(copy_run).translate_lines(SOURCES, spec, decoding=Decoding(beam=beam, ahead=ahead))
    assert [trace.text() for trace in theirs] == [trace.text() for trace in ours]
    assert [trace.delays for trace in theirs] == [trace.delays for trace in ours]
    assert [trace.source_length for trace in theirs] == [trace.source_length for trace in ours]
    if "c=" in spec:  # catch-up: two words with the same delay before the source ended
        assert any(
            a == b < trace.source_length for trace in ours for a, b in zip(trace.delays, trace.delays[1:], strict=False)
        )
    capsys.readouterr()
    assert main(["evaluate", str(copy_run), *map(str, common), "--reference", str(reference), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    with (out / "scores.tsv").open() as file:
        (scores,) = csv.DictReader(file, delimiter="\t")
    pairs = {"BLEU": "BLEU", "AL": "AL_ref", "LAAL": "LAAL", "AP": "AP_ref", "DAL": "DAL"}
    for name, our_name in pairs.items():
        assert float(scores[name]) == pytest.approx(found["scores"][our_name], abs=0.00051), name


def test_an_empty_line_and_odd_words_pass_through(copy_run: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "source.txt", tmp_path / "out"
    source.write_text(f"{SOURCES[0]}\n\n\x07 baba {'x' * 600}\n", encoding="utf-8")
    done = simuleval(
        *WAYS["file"], "--model", copy_run, "--source", source, "--target", source, "--output", out, "--no-scoring"
    )
    assert done.returncode == 0, done.stderr
    instances = [json.loads(line) for line in (out / "instances.log").read_text().splitlines()]
    assert [len(instance["delays"]) > 0 for instance in instances] == [True, False, True]
    assert instances[0]["prediction"] == SOURCES[0]
    assert [instance["source_length"] for instance in instances] == [len(SOURCES[0].split()), 0, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--model", "/nowhere"], "stacl agent: no model /nowhere"),
        (["--model", "{run}", "--policy", "wait-q"], "stacl agent: no policy is called 'wait-q'; did you mean wait-k?"),
        (["--model", "{run}", "--beam", "0"], "stacl agent: the beam must be from 1 to 100, not 0"),
    ],
)
def test_mistakes_are_one_line(copy_run: Path, files: tuple[Path, Path], options: list[str], message: str) -> None:
    named = [option.format(run=copy_run) for option in options]
    done = simuleval(*WAYS["file"], *named, "--source", files[0], "--target", files[1])
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(message)
    assert "Traceback" not in done.stderr


def test_states_belong_to_the_caller(copy_run: Path) -> None:
    """One agent with two sentences at once, as in a pipeline: each has its own states."""
    agents, segments = importlib.import_module("simuleval.agents"), importlib.import_module("simuleval.data.segments")
    from stacl.interop.simuleval import StaclAgent

    agent = StaclAgent(argparse.Namespace(model=copy_run, policy="wait-k:1", beam=1, ahead=0))
    assert isinstance(agent, agents.TextToTextAgent)
    states = [agent.build_states(), agent.build_states()]
    said: list[list[str]] = [[], []]
    sentences = [SOURCES[1].split()[:4], SOURCES[2].split()[:4]]
    for step in range(4):
        for i in range(2):
            segment = segments.TextSegment(content=sentences[i][step], finished=step == 3)
            said[i].append(agent.pushpop(segment, states[i]).content)
    assert said == sentences


def test_without_simuleval_the_module_can_be_imported_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simuleval", None)  # as if it were not installed
    for name in [name for name in sys.modules if name.startswith(("simuleval.", "stacl.interop."))]:
        monkeypatch.delitem(sys.modules, name)
    module = importlib.import_module("stacl.interop.simuleval")
    with pytest.raises(UserError, match="SimulEval is not installed"):
        module.StaclAgent(argparse.Namespace(model="runs/any", policy=None, beam=1, ahead=0))
    monkeypatch.delitem(sys.modules, "stacl.interop.simuleval")
