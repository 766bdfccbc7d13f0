"""The fast training step equals a plain implementation; properties of dropout."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from stacl.config import TrainSettings
from stacl.models import loss
from stacl.models.base import Model
from stacl.models.batch import Batch
from stacl.models.dropout import Dropout, keep_mask
from stacl.models.loss import loss_of
from stacl.models.masks import first, reading, visible_pieces
from stacl.models.rnn import Rnn
from stacl.models.transformer import Transformer, positions
from stacl.policies.base import policy
from stacl.training import optim
from tests.helpers import VOCABULARY, random_batch

SIZE = {"width": 16, "inner": 32, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
KINDS = ("causal", "prefix", "rnn")
SMOOTHING = 0.1


def fresh(kind: str, dropout: float = 0.0) -> Model:
    torch.manual_seed(5)
    if kind == "rnn":
        return Rnn(VOCABULARY, VOCABULARY, **SIZE, dropout=dropout, shared=True).train()
    return Transformer(VOCABULARY, VOCABULARY, **SIZE, dropout=dropout, encoder=kind, shared=True).train()


def batches(step: int) -> tuple[Batch, torch.Tensor]:
    """A batch and its g, different at every step; k is drawn for each sentence."""
    rng = random.Random(step)
    sizes = tuple((rng.randint(1, 7), rng.randint(1, 7)) for _ in range(4))
    batch = random_batch("word", seed=step, sizes=sizes)
    return batch, reading(policy("wait-k:1-5"), batch, rng)


def plain_attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor, heads: int
) -> torch.Tensor:
    """Textbook attention: [T, D], [S, D], [S, D], [T, S] -> [T, D]."""
    parts = []
    for q, k, v in zip(query.chunk(heads, -1), key.chunk(heads, -1), value.chunk(heads, -1), strict=True):
        scores = (q @ k.T / math.sqrt(q.shape[-1])).masked_fill(~mask, -1e30)
        weights = scores.softmax(-1) * mask  # a row that sees no key becomes zeros
        parts.append(weights @ v)
    return torch.cat(parts, dim=-1)


def plain_encoder(model: Any, source: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The states of the pieces [S] of one sentence under the mask [S, S]."""
    x = model.source_embedding(source) * math.sqrt(model.width)
    x = x + positions(0, len(source), model.width, x.device)
    for layer in model.encoder_layers:
        own = layer.attention
        query, key, value = own.in_proj(layer.attention_norm(x)).chunk(3, -1)
        x = x + own.out_proj(plain_attention(query, key, value, mask, own.heads))
        x = x + layer.feed.down(F.relu(layer.feed.up(layer.feed_norm(x))))
    return model.encoder_norm(x)


def plain_logits(model: Any, source: torch.Tensor, target: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
    """Transformer logits [T, V] of one sentence; position t sees visible[t] pieces."""
    steps, pieces = len(target), len(source)
    if model.prefix:  # every position has its own encoded prefix
        memories = []
        for count in visible.tolist():
            mask = first(torch.tensor(count), pieces).expand(pieces, pieces)
            memories.append(plain_encoder(model, source, mask))
    else:
        states = plain_encoder(model, source, torch.ones(pieces, pieces, dtype=torch.bool).tril())
        memories = [states] * steps
    x = model.target_embedding(target) * math.sqrt(model.width)
    x = x + positions(0, steps, model.width, x.device)
    causal = torch.ones(steps, steps, dtype=torch.bool).tril()
    for layer in model.decoder_layers:
        own, cross = layer.self_attention, layer.cross_attention
        query, key, value = own.in_proj(layer.self_norm(x)).chunk(3, -1)
        x = x + own.out_proj(plain_attention(query, key, value, causal, own.heads))
        query = cross.query_proj(layer.cross_norm(x))
        answers = []
        for step in range(steps):
            key, value = cross.memory_proj(memories[step]).chunk(2, -1)
            seen = first(visible[step], pieces)[None]
            answers.append(plain_attention(query[step : step + 1], key, value, seen, cross.heads))
        x = x + cross.out_proj(torch.cat(answers))
        x = x + layer.feed.down(F.relu(layer.feed.up(layer.feed_norm(x))))
    return F.linear(model.decoder_norm(x), model.target_embedding.weight, model.bias)


def plain_loss(model: Model, batch: Batch, g: torch.Tensor) -> torch.Tensor:
    """The loss sentence by sentence. The RNN has no fast path, so its own logits are used."""
    total = torch.zeros(())
    if isinstance(model, Rnn):
        every = model(batch, g)
    visible = visible_pieces(batch.source_units, g)
    for row in range(batch.size):
        real = batch.real[row]
        source = batch.source[row][batch.source_units[row] < 2**30]
        if isinstance(model, Rnn):
            logits = every[row][real]
        else:
            logits = plain_logits(model, source, batch.target_in[row][real], visible[row][real])
        logs = torch.log_softmax(logits, dim=-1)
        right = logs.gather(1, batch.target_out[row][real][:, None]).sum()
        total = total - (1 - SMOOTHING) * right - SMOOTHING * logs.mean(-1).sum()
    return total / int(batch.real.sum())


@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_steps_agree_with_the_plain_path(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two independent trainings have the same losses and gradients."""
    monkeypatch.setattr(loss, "CHUNK", 7 * VOCABULARY)  # several chunks, the last one incomplete
    settings = TrainSettings(rate=1e-3, warmup=0, schedule="constant")
    fast, plain = fresh(kind), fresh(kind)
    optimizer = optim.build(fast, settings)
    reference = torch.optim.AdamW(plain.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    differences = []
    for step in range(100):
        batch, g = batches(step)
        found = loss_of(fast, batch, g, SMOOTHING)
        (found.smoothed / found.positions).backward()
        expected = plain_loss(plain, batch, g)
        expected.backward()
        differences.append(abs(float(found.smoothed.detach()) / found.positions - float(expected.detach())))
        for (name, one), other in zip(fast.named_parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(one.grad, other.grad, atol=1e-5, rtol=1e-4, msg=f"step {step}, {name}")
        torch.nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        reference.step()
        reference.zero_grad()
        optim.step(optimizer, fast, 1e-3, 1.0, scaler)
    assert max(differences) < 1e-5


def test_the_plain_path_notices_a_difference() -> None:
    """Another g gives another loss, so the comparison above can fail."""
    model = fresh("causal")
    batch, g = batches(0)
    with torch.no_grad():
        assert abs(plain_loss(model, batch, g) - plain_loss(model, batch, torch.ones_like(g))) > 1e-4


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_fused_loss_reports_the_nll_and_needs_no_gradient(smoothing: float) -> None:
    model = fresh("causal").eval()
    batch, g = batches(1)
    with torch.inference_mode():
        found = loss_of(model, batch, g, smoothing)
        right = batch.target_out[batch.real]
        smoothed, nll = loss.plain(model(batch, g)[batch.real], right, torch.ones(len(right)), smoothing)
    torch.testing.assert_close(found.nll, nll, atol=1e-4, rtol=1e-6)
    torch.testing.assert_close(found.smoothed, smoothed, atol=1e-4, rtol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_fused_loss_gives_each_sentence_its_weight(smoothing: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Includes weights below 0, which make a sentence less likely."""
    monkeypatch.setattr(loss, "CHUNK", 7 * VOCABULARY)
    batch, g = batches(2)
    weights = torch.linspace(-1.0, 2.0, batch.size)
    fused, defined = fresh("causal"), fresh("causal")
    found = loss_of(fused, batch, g, smoothing, weights).smoothed
    counts = weights[:, None].expand_as(batch.real)[batch.real]
    expected, _ = loss.plain(defined(batch, g)[batch.real], batch.target_out[batch.real], counts, smoothing)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-5)
    found.backward()
    expected.backward()
    for (name, one), other in zip(fused.named_parameters(), defined.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize("kind", KINDS)
def test_mixed_precision_comes_close(kind: str) -> None:
    """Under autocast the plain loss is used; dropout, packing and masks must handle both data types."""
    model = fresh(kind, dropout=0.2)
    batch, g = batches(3)
    found = []
    for mixed in (False, True):
        torch.manual_seed(1)
        with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
            found.append(loss_of(model, batch, g, SMOOTHING).smoothed)
        found[-1].backward()
    assert float(found[1].detach()) == pytest.approx(float(found[0].detach()), rel=0.02)


def test_fused_loss_is_finite_for_extreme_logits() -> None:
    """The nll of a nearly impossible target is large, not infinite."""
    weight = torch.tensor([[200.0], [-200.0], [0.0]], requires_grad=True)
    hidden = torch.ones(2, 1, requires_grad=True)
    bias = torch.zeros(3, requires_grad=True)
    smoothed, nll = loss._LinearLoss.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, torch.tensor([1, 1]), torch.ones(2), 0.0
    )
    assert nll.item() == pytest.approx(800.0)
    smoothed.backward()
    assert all(x.grad is not None and torch.isfinite(x.grad).all() for x in (weight, hidden, bias))


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_dropout_has_the_right_rate_and_mean(rate: float) -> None:
    torch.manual_seed(0)
    mask = keep_mask((1000, 1001), rate)
    dropped = (mask == 0).double().mean().item()
    assert dropped == pytest.approx(rate, abs=0.002)  # four standard deviations of a million draws
    assert mask.double().mean().item() == pytest.approx(1.0, abs=0.005)
    assert len(mask.unique()) == 2
    # Neighbours, rows and columns are independent of each other.
    kept = (mask != 0).double()
    for one, other in ((kept[:, 1:], kept[:, :-1]), (kept[1:], kept[:-1])):
        both = (one * other).mean().item()
        assert both == pytest.approx((1 - rate) ** 2, abs=0.003)


def test_dropout_follows_torch_s_seed() -> None:
    dropout = Dropout(0.2).train()
    x = torch.ones(64, 64)
    torch.manual_seed(7)
    one, two = dropout(x), dropout(x)
    torch.manual_seed(7)
    assert torch.equal(dropout(x), one)
    assert torch.equal(dropout(x), two)
    assert not torch.equal(one, two)
    assert torch.equal(dropout.eval()(x), x)


def test_dropout_added_is_a_residual_with_dropout_and_its_gradient() -> None:
    dropout = Dropout(0.4).train()
    x, branch = torch.randn(8, 9, requires_grad=True), torch.randn(8, 9, requires_grad=True)
    torch.manual_seed(3)
    together = dropout.added(x, branch)
    torch.manual_seed(3)
    mask = keep_mask((8, 9), 0.4)
    torch.testing.assert_close(together, x + branch * mask)
    together.sum().backward()
    assert x.grad is not None
    assert branch.grad is not None
    assert torch.equal(x.grad, torch.ones_like(x))
    assert torch.equal(branch.grad, mask)


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_with_dropout_is_bit_identical_under_the_same_seed(kind: str) -> None:
    model = fresh(kind, dropout=0.3)
    batch, g = batches(2)

    def gradients(seed: int) -> list[torch.Tensor]:
        model.zero_grad()
        torch.manual_seed(seed)
        loss_of(model, batch, g, SMOOTHING).smoothed.backward()
        return [p.grad.clone() for p in model.parameters()]  # type: ignore[union-attr]

    assert all(torch.equal(one, other) for one, other in zip(gradients(1), gradients(1), strict=True))
    assert not all(torch.equal(one, other) for one, other in zip(gradients(1), gradients(2), strict=True))
