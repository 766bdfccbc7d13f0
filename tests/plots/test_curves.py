"""Quality against latency: what makes one curve, and how it is drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stacl.plots import base, tradeoff
from tests.plots.conftest import drawn_text

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def test_curves_are_grouped_by_family(folder: Path) -> None:
    curves = tradeoff.read_curves("ours=ours.json")
    assert {name: [point.note for point in points] for name, points in curves.items()} == {
        "ours, wait-k": ["5", "1", "3"],
        "ours, full": [""],
    }
    assert list(tradeoff.read_curves("theirs=theirs1.json,theirs3.json")) == ["theirs"]
    assert list(tradeoff.read_curves("theirs1.json")) == ["theirs1"]
    found = [
        {"policy": f"wait-k:{k}{options}", "scores": {"BLEU": 1, "AL": 1}} for k in (1, 3) for options in ("", ",c=0.2")
    ]
    Path("catching-up.json").write_text(json.dumps(found))
    curves = tradeoff.read_curves("catching-up.json")
    assert {name: [point.note for point in points] for name, points in curves.items()} == {
        "wait-k": ["1", "3"],
        "wait-k, c=0.2": ["1", "3"],
    }


def test_names_of_files_may_have_any_sign(folder: Path) -> None:
    point = json.dumps({"policy": "wait-k:3", "scores": {"BLEU": 1, "AL": 1}})
    Path("a,b").mkdir()
    for name in ("c=0.25.json", "a,b/n=1.json", "plain.json"):
        Path(name).write_text(point)
    assert list(tradeoff.read_curves("c=0.25.json")) == ["wait-k"]
    assert list(tradeoff.read_curves("ours=c=0.25.json")) == ["ours"]
    assert list(tradeoff.read_curves("ours=a,b/n=1.json")) == ["ours"]
    assert [len(points) for points in tradeoff.read_curves("ours=c=0.25.json,plain.json").values()] == [2]


def test_only_a_point_to_the_right_is_far() -> None:
    def curve(*latencies: float) -> list[tradeoff.Point]:
        return [tradeoff.Point({"AL": latency, "BLEU": 20.0}, {}) for latency in latencies]

    assert tradeoff._far_points({"fast": curve(-1.0, -0.2), "near": curve(-0.25)}, "AL", "BLEU") == set()
    assert tradeoff._far_points({"fast": curve(-1.0, -0.2), "full": curve(12.0)}, "AL", "BLEU") == {"full"}


def test_curves_of_several_test_sets_are_kept_apart(folder: Path) -> None:
    found = [
        {"set": name, "policy": f"wait-k:{k}", "scores": {"BLEU": 30.0 + k, "AL": k}}
        for name in ("captions", "news")
        for k in (1, 3)
    ]
    (folder / "both.json").write_text(json.dumps(found))
    notes = {name: [point.note for point in points] for name, points in tradeoff.read_curves("ours=both.json").items()}
    assert notes == {"ours, wait-k, captions": ["1", "3"], "ours, wait-k, news": ["1", "3"]}


def test_curves_of_several_decodings_are_kept_apart(folder: Path) -> None:
    """Greedy and with a beam in one scores.json; another policy, decoded in one way only, needs not say in which."""

    def result(policy: str, decoding: str) -> dict[str, Any]:
        signature = f"policy:{policy}|policy-unit:word|{decoding}|decoding:batched|version:1.0"
        return {"policy": policy, "scores": {"BLEU": 30.0, "AL": 1.0}, "signatures": {"decoding": signature}}

    greedy, beam = "beam:1|early-end:masked", "beam:5|early-end:masked"
    found = [result(f"wait-k:{k}", decoding) for decoding in (greedy, beam) for k in (1, 3)]
    (folder / "both.json").write_text(json.dumps([*found, result("none", "beam:1|early-end:allowed")]))
    notes = {name: [point.note for point in points] for name, points in tradeoff.read_curves("both.json").items()}
    assert notes == {"wait-k, beam=1": ["1", "3"], "wait-k, beam=5": ["1", "3"], "none": [""]}
    (folder / "one.json").write_text(json.dumps(found[:2]))
    assert list(tradeoff.read_curves("ours=one.json")) == ["ours"]


def test_curve_is_sorted_and_has_whiskers(folder: Path) -> None:
    base.prepare([])
    curves = tradeoff.read_curves("ours=ours.json") | tradeoff.read_curves("theirs=theirs1.json,theirs3.json")
    figure = tradeoff.draw(curves, ["AL"], "BLEU")
    (axes,) = figure.axes
    containers: Any = axes.containers
    ours, theirs = [bars.lines[0] for bars in containers]
    assert list(ours.get_xdata()) == [1, 3, 5]
    assert (ours.get_marker(), ours.get_linestyle()) != (theirs.get_marker(), theirs.get_linestyle())
    assert len(containers[1].lines[2]) == 1  # the quality's interval, and none for latency
    # The full sentence lies far to the right: its level is drawn, and its latency is written.
    assert axes.get_xlim()[1] < 10
    assert "at 30 →" in drawn_text(figure)
