"""The shipped models give the same words and delays as when the fixtures were written."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import stacl
from tests.samples import DATA

OUTPUTS = DATA / "outputs"
MODELS = sorted(path.name.removesuffix(".tsv.gz") for path in OUTPUTS.glob("*.tsv.gz"))
POLICIES = ("wait-k:1", "wait-k:3", "full", "confidence:2-6")

# Maximum share of lines that differ on a processor that rounds int8 products differently.
OTHER_ROUNDING = 0.03


def same_rounding() -> bool:
    """Whether this processor has the instructions (VNNI) with which the fixtures were made."""
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return False
    return "avx512_vnni" in flags or "avx_vnni" in flags


def expected(model: str) -> dict[str, list[tuple[str, str]]]:
    """Return for each policy the translation and the delays of each source line."""
    found: dict[str, list[tuple[str, str]]] = {name: [] for name in POLICIES}
    with gzip.open(OUTPUTS / f"{model}.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            name, text, delays = line.rstrip("\n").split("\t")
            found[name].append((text, delays))
    return found


def test_a_fixture_for_every_shipped_model() -> None:
    from stacl.runs import pretrained

    assert sorted(pretrained.names()) == MODELS


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_outputs_are_unchanged(model: str) -> None:
    """Greedy decoding of 200 lines under four policies, word for word and delay for delay.

    The weights are int8. Processors without VNNI add pairs of products in 16 bits with saturation, so a sum,
    and sometimes a word, can differ. On such a processor up to 3 % of the lines may differ.
    """
    translator = stacl.load(model)
    lines = (OUTPUTS / f"source.{translator.source_language.code}").read_text(encoding="utf-8").splitlines()
    for name, wanted in expected(model).items():
        assert len(lines) == len(wanted) == 200
        traces = translator.translate_lines(lines, name)
        found = [(translator.target_language.join(trace.target), " ".join(map(str, trace.delays))) for trace in traces]
        differing = [pair for pair in zip(wanted, found, strict=True) if pair[0] != pair[1]]
        allowed = 0 if same_rounding() else OTHER_ROUNDING * len(lines)
        assert len(differing) <= allowed, (name, len(differing), differing[:3])
