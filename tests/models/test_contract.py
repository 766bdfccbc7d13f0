"""Invariants of every model, policy and unit (SPEC 9)."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
import torch

from stacl.models._prefixes import Prefixes
from stacl.models.base import Model
from stacl.models.batch import Batch
from stacl.models.masks import reading, visible_pieces
from stacl.policies.base import policy
from stacl.support import plugins
from stacl.text.subwords import PAD
from tests.helpers import VOCABULARY, random_batch, row_of, tiny_models

MODELS = tiny_models()
POLICIES = [
    "full",
    "none",
    "wait-k:1",
    "wait-k:3",
    "wait-k:9",
    "wait-k:2,c=0.25",
    "wait-k:2,c=-1/4",
    "wait-k:1-4",
]
everywhere = pytest.mark.parametrize("unit", ["word", "piece"])
every_model = pytest.mark.parametrize("name", MODELS)
every_policy = pytest.mark.parametrize("spec", POLICIES)


def masked(model: Model, batch: Batch, spec: str, unit: str, seed: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    g = reading(policy(spec, unit), batch, random.Random(seed))
    with torch.no_grad():
        return model(batch, g), g


def test_every_model_file_is_covered() -> None:
    kinds = {type(model) for model in MODELS.values()}
    assert kinds == {
        plugins.find("models", name, Model)  # type: ignore[type-abstract]
        for name in plugins.names("models")
    }


@everywhere
@every_policy
@every_model
def test_live_equals_masked(name: str, spec: str, unit: str) -> None:
    """SPEC 9.1: live decoding under the policy gives the logits of the training pass."""
    model, batch = MODELS[name], random_batch(unit)
    logits, g = masked(model, batch, spec, unit)
    for row in range(batch.size):
        source, units, fed = row_of(batch, row)
        state, done = model.start(), 0
        for step, previous in enumerate(fed):
            due = sum(number <= g[row, step] for number in units)
            while done < due:  # a few pieces at a time, as in live use
                upto = min(due, done + 2)
                state = model.read(state, torch.tensor([source[done:upto]]))
                done = int(upto)
            with torch.no_grad():
                state, live = model.write(state, torch.tensor([previous]))
            torch.testing.assert_close(live[0], logits[row, step], atol=1e-5, rtol=1e-5)


@everywhere
@every_policy
@every_model
def test_batched_decoding_equals_masked(name: str, spec: str, unit: str) -> None:
    """Rows with different delays, decoded together with `visible`, give the logits of the training pass."""
    model, batch = MODELS[name], random_batch(unit)
    logits, g = masked(model, batch, spec, unit)
    visible = visible_pieces(batch.source_units, g)
    with torch.no_grad():
        state = model.read(model.start(batch.size), batch.source)
        for step in range(batch.target_in.shape[1]):
            state, live = model.write(state, batch.target_in[:, step], visible[:, step])
            real = batch.real[:, step]
            torch.testing.assert_close(live[real], logits[:, step][real], atol=1e-5, rtol=1e-5)


@everywhere
@every_policy
@every_model
def test_no_peeking(name: str, spec: str, unit: str) -> None:
    """SPEC 9.2: source words after g(t) do not change the logits at t, bit for bit."""
    model, batch = MODELS[name], random_batch(unit)
    logits, g = masked(model, batch, spec, unit)
    for seen in range(int(batch.source_lengths.max()) + 1):
        unseen = (batch.source_units > seen) & (batch.source != PAD)
        other = torch.where(unseen, (batch.source * 7 + 5) % (VOCABULARY - 4) + 4, batch.source)
        changed, _ = masked(model, dataclasses.replace(batch, source=other), spec, unit)
        untouched = (g <= seen) & batch.real
        assert torch.equal(changed[untouched], logits[untouched])


@everywhere
@every_model
def test_visible_words_matter(name: str, unit: str) -> None:
    """Guards the test above, which would pass if the model ignored the source."""
    model, batch = MODELS[name], random_batch(unit)
    logits, _ = masked(model, batch, "wait-k:2", unit)
    other = torch.where(batch.source_units <= 1, (batch.source + 1 - 4) % (VOCABULARY - 4) + 4, batch.source)
    changed, _ = masked(model, dataclasses.replace(batch, source=other), "wait-k:2", unit)
    assert ((changed - logits).abs().amax(-1)[batch.real] > 1e-4).all()


@everywhere
@every_model
def test_no_source_is_defined(name: str, unit: str) -> None:
    logits, _ = masked(MODELS[name], random_batch(unit), "none", unit)
    assert torch.isfinite(logits).all()


@everywhere
@every_model
def test_no_source_has_gradients_without_nan(name: str, unit: str) -> None:
    model = MODELS[name]
    batch = random_batch(unit)
    g = reading(policy("none", unit), batch, random.Random(0))
    model.zero_grad()
    model(batch, g)[batch.real].logsumexp(-1).sum().backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in model.parameters())
    model.zero_grad()


@every_model
def test_padding_changes_nothing(name: str) -> None:
    """A sentence has the same logits alone and in a batch with longer ones."""
    model = MODELS[name]
    alone = random_batch("word", sizes=((5, 7),))
    together = random_batch("word", sizes=((5, 7), (12, 15)))
    one, _ = masked(model, alone, "wait-k:2", "word")
    two, _ = masked(model, together, "wait-k:2", "word")
    length = alone.target_in.shape[1]
    torch.testing.assert_close(one[0], two[0, :length], atol=1e-5, rtol=1e-5)


@every_model
def test_reading_all_equals_full_sentence(name: str) -> None:
    """SPEC 9.4: g = |x| is the full-sentence model: k beyond the source, inf, and full agree bit for bit."""
    model, batch = MODELS[name], random_batch("word")
    full, _ = masked(model, batch, "full", "word")
    for spec in ("wait-k:inf", "wait-k:50"):
        assert torch.equal(masked(model, batch, spec, "word")[0], full)


@every_model
def test_states_are_values(name: str) -> None:
    """`read` and `write` do not change the state that they are given."""
    model = MODELS[name]
    with torch.no_grad():
        before = model.read(model.start(), torch.tensor([[5, 6, 7]]))
        before, first = model.write(before, torch.tensor([2]))
        ahead = model.read(before, torch.tensor([[9, 12]]))
        ahead, _ = model.write(ahead, torch.tensor([8]))
        model.write(ahead, torch.tensor([9]))
        _, once = model.write(before, torch.tensor([10]))
        _, again = model.write(before, torch.tensor([10]))
    assert torch.equal(once, again)
    assert not torch.equal(first, once)


@every_model
def test_rows_can_be_selected(name: str) -> None:
    model, batch = MODELS[name], random_batch("word")
    with torch.no_grad():
        state = model.read(model.start(batch.size), batch.source)
        visible = torch.tensor([3, 2, 4, 1])
        state, _ = model.write(state, batch.target_in[:, 0], visible)
        _, logits = model.write(state, batch.target_in[:, 1], visible)
        rows = torch.tensor([2, 0, 0])
        _, chosen = model.write(state.select(rows), batch.target_in[rows, 1], visible[rows])
    torch.testing.assert_close(chosen, logits[rows], atol=1e-6, rtol=1e-6)


def test_prefix_encoder_is_an_ordinary_transformer_when_everything_is_read() -> None:
    """Compares the full-sentence encoder with torch's encoder layers, with the same weights."""
    model: Any = MODELS["transformer-prefix"]
    batch = random_batch("word")
    padding = batch.source == PAD
    g = reading(policy("full"), batch, random.Random(0))
    with torch.no_grad():
        prefixes = Prefixes.of(batch.source, visible_pieces(batch.source_units, g))
        states = model._encode_packed(prefixes)
        x = model._embed(model.source_embedding, batch.source, 0)
        for layer in model.encoder_layers:
            peer = torch.nn.TransformerEncoderLayer(16, 2, 32, 0.0, batch_first=True, norm_first=True).eval()
            peer.self_attn.in_proj_weight.copy_(layer.attention.in_proj.weight)
            peer.self_attn.in_proj_bias.copy_(layer.attention.in_proj.bias)
            peer.self_attn.out_proj.load_state_dict(layer.attention.out_proj.state_dict())
            peer.linear1.load_state_dict(layer.feed.up.state_dict())
            peer.linear2.load_state_dict(layer.feed.down.state_dict())
            peer.norm1.load_state_dict(layer.attention_norm.state_dict())
            peer.norm2.load_state_dict(layer.feed_norm.state_dict())
            x = peer.train()(x, src_key_padding_mask=padding)
        expected = model.encoder_norm(x)
    lengths = (~padding).sum(-1)
    by_length = lengths.argsort(stable=True).tolist()
    packed = torch.cat([expected[row, : lengths[row]] for row in by_length])
    torch.testing.assert_close(states, packed, atol=1e-5, rtol=1e-5)
