"""`stacl evaluate` with a model that has learned to copy: live and batched, interrupted and resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stacl.__main__ import main
from stacl.corpora.base import corpus
from stacl.live.translator import Translator
from stacl.traces import logs
from tests.conftest import stacl

pytestmark = pytest.mark.slow
LINES = [source for source, _ in corpus("copy").open("test")][:40]
# Scores that depend on time differ between runs.
TIMED = ("ms_per_word", "RTF")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A source of forty lines, a perfect reference, and a reference in which every second line is wrong."""
    other = [line if number % 2 else "baba befe" for number, line in enumerate(LINES)]
    found = {}
    for name, lines in {"source": LINES, "perfect": LINES, "other": other, "short": LINES[:-1]}.items():
        found[name] = tmp_path / f"{name}.txt"
        found[name].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return found


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert main(["evaluate", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def untimed(result: dict[str, Any]) -> dict[str, float]:
    return {name: score for name, score in result["scores"].items() if name not in TIMED and not name.endswith("_CA")}


def test_json_is_a_list_of_scores_and_signatures(copy_run: Path, files: dict[str, Path]) -> None:
    done = stacl(
        *("evaluate", copy_run, "--source", files["source"], "--reference", files["perfect"]),
        *("--policy", "wait-k:1", "wait-k:3", "wait-k:2,unit=piece", "--json"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    results = json.loads(done.stdout)
    assert [result["policy"] for result in results] == ["wait-k:1", "wait-k:3", "wait-k:2,unit=piece"]
    for result in results:
        assert {"AL", "AL_ref", "LAAL", "AP", "CW", "CW_max", "DAL", "ATD", "YAAL", "BLEU", "chrF"} <= result[
            "scores"
        ].keys()
        assert result["scores"].keys() <= result["signatures"].keys()
        assert f"policy:{result['policy']}|" in result["signatures"]["decoding"]
        assert f"|n:{len(LINES)}|" in result["signatures"]["LAAL"]
    copied = results[0]["scores"]
    assert copied["BLEU"] > 97
    assert copied["chrF"] > 97
    # One word behind, and as long as the source: AL = DAL = 1 and AP = (n+1)/2n, whatever n is.
    assert copied["AL"] == pytest.approx(1, abs=0.05)
    assert copied["DAL"] == pytest.approx(1, abs=0.05)
    expected = sum((len(line.split()) + 1) / (2 * len(line.split())) for line in LINES) / len(LINES)
    assert copied["AP"] == pytest.approx(expected, abs=0.01)
    assert results[1]["scores"]["AL_ref"] > 2
    assert results[1]["scores"]["BLEU"] < copied["BLEU"]


def test_the_table_has_a_row_for_each_policy(
    copy_run: Path, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = run(
        *(capsys, copy_run, "--source", files["source"], "--reference", files["perfect"]),
        *("--policy", "wait-k:1", "wait-k:2,c=0.25"),
    )
    head, first, second, blank, *signatures = shown.splitlines()
    assert head.split() == ["policy", "BLEU", "chrF", "AL", "LAAL", "AP", "CW", "DAL", "empty", "loops"]
    assert [first.split()[0], second.split()[0]] == ["wait-k:1", "wait-k:2,c=0.25"]
    assert len(first.split()) == len(head.split())
    assert blank == ""
    assert signatures[0].startswith("decoding: policy:wait-k:1|")
    assert any(line.startswith("BLEU: nrefs:1|") for line in signatures)


def test_the_default_policy_is_the_models_own(
    copy_run: Path, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    shown = json.loads(run(capsys, copy_run, "--source", files["source"], "--reference", files["perfect"], "--json"))
    assert [result["policy"] for result in shown] == ["wait-k:1"]


def test_several_references(copy_run: Path, files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Each line may match either reference: two references give the score of the better one."""
    scores, signatures = {}, {}
    for names in (("perfect",), ("other",), ("other", "perfect")):
        paths = [files[name] for name in names]
        shown = run(capsys, copy_run, "--source", files["source"], "--reference", *paths, "--json")
        scores[names], signatures[names] = json.loads(shown)[0]["scores"], json.loads(shown)[0]["signatures"]
    assert scores["other",]["BLEU"] < 80
    assert scores["other", "perfect"]["BLEU"] == pytest.approx(scores["perfect",]["BLEU"])
    assert signatures["other", "perfect"]["BLEU"].startswith("nrefs:2|")
    # Lengths are those of the first reference.
    assert scores["other", "perfect"]["AL_ref"] == scores["other",]["AL_ref"] != scores["perfect",]["AL_ref"]


@pytest.mark.parametrize(("beam", "ahead"), [(1, 0), (3, 0), (3, 2)])
def test_live_and_batched_score_the_same(
    copy_run: Path, files: dict[str, Path], capsys: pytest.CaptureFixture[str], beam: int, ahead: int
) -> None:
    common: tuple[object, ...] = (
        copy_run,
        "--source",
        files["source"],
        "--reference",
        files["perfect"],
        "--json",
        "--beam",
        beam,
    )
    common += ("--ahead", ahead)
    policies = ("--policy", "wait-k:1", "wait-k:3", "full")
    batched = json.loads(run(capsys, *common, *policies))
    live = json.loads(run(capsys, *common, *policies, "--live"))
    for one, other in zip(batched, live, strict=True):
        assert untimed(one) == pytest.approx(untimed(other))
        assert set(TIMED).isdisjoint(one["scores"])
        assert f"|beam:{beam}|{f'ahead:{ahead}|' if ahead else ''}early-end" in other["signatures"]["decoding"]
        assert "decoding:live|pace:0.4s" in other["signatures"]["decoding"]
    timed = live[0]["scores"]
    assert 0 < timed["ms_per_word"] < 10_000
    assert timed["AL_CA"] > 0
    assert "clock:wall" in live[0]["signatures"]["ms_per_word"]
    # A lag of one word is the time of one word plus a little computing. (Under `full` this model writes nothing.)
    for scores in scores_of(live)[:2]:
        assert scores["AL_CA"] / 1000 == pytest.approx(0.4 * scores["AL"], rel=0.5)


def test_the_pace_sets_the_times(copy_run: Path, files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    common: tuple[object, ...] = (
        copy_run,
        "--source",
        files["source"],
        "--reference",
        files["perfect"],
        "--policy",
        "wait-k:2",
        "--live",
    )
    slow, fast = (scores_of(json.loads(run(capsys, *common, "--json", "--pace", pace)))[0] for pace in (4, 0.001))
    assert slow["RTF"] < 0.5 < fast["RTF"]
    assert slow["AL_CA"] > 4 * 1000
    shown = run(capsys, *common)
    assert all(name in shown.splitlines()[0] for name in ("AL_CA", "RTF", "ms_per_word"))


def scores_of(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [result["scores"] for result in results]


class Counted:
    """Counts the sentences that were decoded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lines: list[str] = []
        decode = Translator.translate_lines

        def counted(translator: Any, lines: Any, *arguments: Any, **options: Any) -> Any:
            self.lines += lines
            return decode(translator, lines, *arguments, **options)

        monkeypatch.setattr(Translator, "translate_lines", counted)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


def test_saved_traces_are_complete_and_score_the_same(
    copy_run: Path, files: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "deep" / "out"
    shown = run(capsys, copy_run, "--source", files["source"], "--reference", files["perfect"], "--json", "--out", out)
    assert json.loads((out / "scores.json").read_text()) == json.loads(shown)
    traces = list(logs.read(out / "wait-k-1.jsonl", "trace"))
    assert [" ".join(trace.source) for trace in traces] == LINES
    capsys.readouterr()
    assert main(["score", str(out / "wait-k-1.jsonl"), "--reference", str(files["perfect"]), "--json"]) == 0
    scored = json.loads(capsys.readouterr().out)
    assert untimed(scored) == pytest.approx(untimed(json.loads(shown)[0]))


@pytest.mark.parametrize("cut", ["in a line", "between lines", "no line", "garbage"])
def test_an_interrupted_evaluation_resumes(
    copy_run: Path,
    files: dict[str, Path],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    counted: Counted,
    cut: str,
) -> None:
    out = tmp_path / "out"
    command = (copy_run, "--source", files["source"], "--reference", files["perfect"], "--json", "--out", out)
    whole = run(capsys, *command)
    log = out / "wait-k-1.jsonl"
    kept = log.read_bytes()
    assert len(counted.lines) == len(LINES)
    lines = kept.splitlines(keepends=True)
    log.write_bytes(
        {
            "in a line": b"".join(lines[:25]) + lines[25][:40],
            "between lines": b"".join(lines[:25]),
            "no line": b"",
            "garbage": b"".join(lines[:25]) + b"\xff\x00 {]\n" + lines[26],
        }[cut]
    )
    (out / "scores.json").unlink()
    counted.lines.clear()
    assert run(capsys, *command) == whole
    assert counted.lines == (LINES if cut == "no line" else LINES[25:])
    assert log.read_bytes() == kept
    assert json.loads((out / "scores.json").read_text()) == json.loads(whole)
    counted.lines.clear()
    assert run(capsys, *command) == whole
    assert counted.lines == []


def test_traces_of_another_text_or_model_are_not_used(
    copy_run: Path, files: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path, counted: Counted
) -> None:
    out = tmp_path / "out"
    command = (copy_run, "--source", files["source"], "--reference", files["perfect"], "--out", out)
    run(capsys, *command)
    counted.lines.clear()
    run(capsys, *command, "--beam", 2)
    assert len(counted.lines) == len(LINES)
    assert len(json.loads((out / "scores.json").read_text())) == 2  # earlier results are kept
    kept = (out / "wait-k-1.jsonl").read_bytes()
    files["source"].write_text("\n".join(LINES[::-1]) + "\n")
    counted.lines.clear()
    run(capsys, *command)
    assert counted.lines == LINES[::-1]
    assert (out / "wait-k-1.jsonl.1").read_bytes() == kept
    assert len(json.loads((out / "scores.json.1").read_text())) == 2  # results of the other text
    (now,) = json.loads((out / "scores.json").read_text())
    assert now["model"] == str(copy_run)
    (out / "scores.json").write_text(json.dumps([now | {"weights": "another's", "policy": "wait-k:9"}]))
    run(capsys, *command)
    assert json.loads((out / "scores.json").read_text()) == [now]
    assert json.loads((out / "scores.json.2").read_text())[0]["weights"] == "another's"
    about = out / "wait-k-1.jsonl.about.json"
    about.write_text(about.read_text().replace('"model": "', '"model": "another'))
    counted.lines.clear()
    run(capsys, *command)
    assert len(counted.lines) == len(LINES)


WEIGHING = """
from stacl.policies.base import Action, Policy
class Sure(Policy):
    needs_confidence = True
    def decide(self, view):
        unsure = view.confidence is not None and view.confidence < {sure}
        return Action.READ if view.read <= view.written or unsure else Action.WRITE
    def spec(self):
        return "sure"
"""


def test_an_edited_policy_is_evaluated_again(
    copy_run: Path, files: dict[str, Path], capsys: pytest.CaptureFixture[str], tmp_path: Path, counted: Counted
) -> None:
    own, out = tmp_path / "mine.py", tmp_path / "out"
    common: tuple[object, ...] = (
        copy_run,
        "--source",
        files["source"],
        "--reference",
        files["perfect"],
        "--json",
        "--out",
        out,
    )
    lagging = []
    for k in (1, 3):
        own.write_text(f"def g(t): return {k} + t - 1\n")
        lagging.append(scores_of(json.loads(run(capsys, *common, "--policy", f"{own}:g")))[0]["AL"])
    assert lagging[0] < lagging[1]
    for sure in (0.5, 0.6):  # not visible in the schedule
        own.write_text(WEIGHING.format(sure=sure))
        counted.lines.clear()
        run(capsys, *common, "--policy", f"{own}:Sure")
        assert len(counted.lines) == len(LINES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["{run}", "--source", "{source}", "--reference", "{short}"], "short.txt has 39 lines, but {source} has 40"),
        (["{run}", "--source", "{tmp}/no", "--reference", "{perfect}"], "cannot read {tmp}/no: No such file"),
        (["{run}", "--source", "{source}", "--reference", "{tmp}/no"], "cannot read {tmp}/no: No such file"),
        (["{tmp}/no", "--source", "{source}", "--reference", "{perfect}"], "no model {tmp}/no"),
        (["{run}", "--source", "{gap}", "--reference", "{gap}"], "line 2 of the source is empty"),
        (["{run}", "--source", "{unseen}", "--reference", "{unseen}"], "line 1 of the source is empty"),
        (["{run}", "--source", "{empty}", "--reference", "{empty}"], "the source is empty"),
        (["{run}", "--source", "{broken}", "--reference", "{perfect}"], "{broken}:2: not UTF-8"),
        (
            ["{run}", "--source", "{source}", "--reference", "{perfect}", "--beam", "0"],
            "the beam must be from 1",
        ),
        (["{run}", "--source", "{source}", "--reference", "{perfect}", "{perfect}"], "a reference is given twice"),
        (["{run}", "--source", "{source}", "--reference", "{perfect}", "--intervals", "-5"], "not -5"),
        (["{run}", "--source", "{source}", "--reference", "{perfect}", "--pace", "1"], "--pace requires --live"),
        (
            ["{run}", "--source", "{source}", "--reference", "{perfect}", "--live", "--pace", "0"],
            "the pace must be above 0",
        ),
        (["{run}", "--source", "{source}", "--reference", "{perfect}", "--policy", "wait-j:1"], "did you mean wait-k?"),
        (
            ["{run}", "--source", "{source}", "--reference", "{perfect}", "--out", "{source}"],
            "cannot create the folder",
        ),
        (
            ["{run}", "--source", "{source}", "--reference", "{perfect}", "--out", "{source}/x"],
            "cannot create the folder",
        ),
    ],
)
def test_mistakes_are_one_line_and_exit_2(
    copy_run: Path,
    files: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    odd = {"gap": b"baba\n \t\nbefe\n", "unseen": b"\x07\n", "empty": b"", "broken": b"baba\n\xff\n"}
    for name, content in odd.items():
        (tmp_path / name).write_bytes(content)
    known = {name: tmp_path / name for name in odd} | files | {"run": copy_run, "tmp": tmp_path}
    capsys.readouterr()
    assert main(["evaluate", *(option.format(**known) for option in options)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("stacl evaluate: ")
    assert message.format(**known) in err


def test_sets_of_corpora_are_named_and_scored_one_by_one(
    copy_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (copy_run, "--set", "copy/test", "copy/val", "--policy", "wait-k:1", "--out", tmp_path / "kept")
    first, second = json.loads(run(capsys, *arguments, "--json"))
    assert (first["set"], second["set"]) == ("copy/test", "copy/val")
    assert min(first["scores"]["BLEU"], second["scores"]["BLEU"]) > 95
    assert "copy/val\npolicy" in run(capsys, *arguments)  # from the traces in --out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--set", "copy"), "--set takes NAME/SPLIT"),
        (("--set", "copy/tset"), "did you mean"),
        (("--set", "copy/test", "--source", "x"), "remove --source"),
        ((), "--set NAME/SPLIT"),
    ],
)
def test_mistakes_in_naming_a_set(
    copy_run: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    assert main(["evaluate", str(copy_run), *options]) == 2
    assert message in capsys.readouterr().err


def test_the_words_of_a_chinese_reference_are_those_of_the_language(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "source").write_text("We like machine translation very much today.\n")
    found = []
    for reference in ("我们今天很喜欢机器翻译。", "我们 今天 很 喜欢 机器翻译 。"):
        (tmp_path / "reference").write_text(f"{reference}\n", encoding="utf-8")
        texts = ("--source", tmp_path / "source", "--reference", tmp_path / "reference")
        shown = run(capsys, "en-zh", *texts, "--policy", "wait-k:2", "--unit", "word", "--json")
        found.append(scores_of(json.loads(shown))[0]["AL_ref"])
    assert found[0] == found[1] > 0
