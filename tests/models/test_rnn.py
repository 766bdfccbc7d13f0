"""Tests of the RNN only; test_contract.py tests all models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from stacl import api, config
from stacl.corpora.base import corpus
from stacl.models.rnn import Rnn
from stacl.runs.folder import build_model
from stacl.support.errors import UserError
from tests.conftest import ROOT, stacl

CONFIG = ROOT / "configs" / "multi30k-de-en-rnn.toml"
SIZE: dict[str, Any] = {"width": 16, "inner": 32, "heads": 2, "encoder_layers": 1}


class Pieces(list[int]):
    """A vocabulary of which only the size matters."""


def built(*changes: str) -> object:
    pieces = Pieces(range(50))
    return build_model(config.load(Path(CONFIG), changes).model, pieces, pieces, shared=True)  # type: ignore[arg-type]


def test_its_config_builds_it() -> None:
    model = built()
    assert isinstance(model, Rnn)
    assert model.source_embedding is model.target_embedding
    assert (len(model.encoder_layers), len(model.decoder_layers)) == (2, 2)


def test_the_prefix_encoder_is_refused() -> None:
    with pytest.raises(UserError, match=r"model\.encoder 'prefix' is only for the Transformer"):
        built("model.encoder=prefix")


def test_one_decoder_layer_is_enough() -> None:
    model = Rnn(40, 40, **SIZE, decoder_layers=1).eval()
    with torch.no_grad():
        state = model.read(model.start(), torch.tensor([[5, 6]]))
        _, logits = model.write(state, torch.tensor([2]))
    assert torch.isfinite(logits).all()


def test_the_decoder_remembers_earlier_attention() -> None:
    """A different attention result at step 1 changes step 2, where the same pieces are visible."""
    torch.manual_seed(0)
    model = Rnn(40, 40, **SIZE, decoder_layers=2).eval()
    with torch.no_grad():
        read = model.read(model.start(), torch.tensor([[5, 6, 7]]))
        logits = []
        for seen in (1, 2):
            state, _ = model.write(read, torch.tensor([2]), torch.tensor([seen]))
            logits.append(model.write(state, torch.tensor([9]), torch.tensor([3]))[1])
    assert (logits[0] - logits[1]).abs().max() > 1e-4


@pytest.mark.slow
def test_it_learns_to_copy_under_wait_1(tmp_path: Path, toy_config: Path) -> None:
    options = ("--set", "model.kind=rnn", "--set", "train.threads=1", "--set", "train.steps=300")
    done = stacl("train", toy_config, "--out", tmp_path / "run", *options)
    assert done.returncode == 0, done.stderr
    lines = [source for source, _ in corpus("copy").open("test")]
    traces = api.load(tmp_path / "run").translate_lines(lines)
    right = sum(" ".join(trace.target) == line for trace, line in zip(traces, lines, strict=True))
    assert right >= 0.9 * len(lines)
