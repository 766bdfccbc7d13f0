"""Minimum risk training (`train.samples`): samples, rewards and learning."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stacl import config
from stacl.decoding.batched import Sources, decode
from stacl.decoding.rules import Rules
from stacl.engines.torch import TorchEngine
from stacl.models.batch import Batch, collate
from stacl.models.loss import loss_of
from stacl.models.masks import scheduled
from stacl.policies.base import policy
from stacl.runs.checkpoint import load_tensors
from stacl.runs.folder import RunFolder, build_model
from stacl.support.errors import UserError
from stacl.training import minimum_risk
from stacl.training.minimum_risk import MinimumRisk, Samples
from stacl.training.prepare import Prepared, prepare
from stacl.training.trainer import Trainer
from tests.conftest import QUICK, changes, stacl

pytestmark = pytest.mark.slow
SAMPLES = 4
# The model has learned to copy; the high temperature makes its samples differ.
SAMPLING = [f"train.samples={SAMPLES}", "train.temperature=2.5", "train.threads=1"]


def started(copy_run: Path, folder: Path, prepared: Prepared | None, *changes: str) -> Trainer:
    settings = config.load(copy_run / "config.toml", [*SAMPLING, f"model.start={copy_run}", *changes])
    trainer = Trainer(settings, RunFolder(folder), prepared or prepare(settings, RunFolder(folder), lambda text: None))
    trainer.resume()
    return trainer


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory, copy_run: Path) -> Trainer:
    return started(copy_run, tmp_path_factory.mktemp("minimum-risk"), None, "policy=wait-k:1-4")


def some_batch(prepared: Prepared, size: int = 5) -> Batch:
    ends = prepared.source.ends_word
    return collate([prepared.train[number] for number in range(size)], ends, ends, "word")


def test_a_batch_gives_back_its_pairs(trainer: Trainer) -> None:
    for number, (source, target) in enumerate(some_batch(trainer.prepared).pairs()):
        expected = trainer.prepared.train[number]
        assert np.array_equal(source, expected[0])
        assert np.array_equal(target, expected[1])


def samples_of(trainer: Trainer, seed: str, **changes: Any) -> Samples:
    """The samples of a batch, after changing attributes such as the temperature or the policy."""
    own = copy.copy(trainer.minimum_risk)
    assert own is not None
    for name, value in changes.items():
        setattr(own, name, value)
    return own.sample(trainer.model.eval(), some_batch(trainer.prepared), seed)


def test_the_same_seed_gives_the_same_samples(trainer: Trainer) -> None:
    one, again, other = (samples_of(trainer, seed) for seed in ("1", "1", "2"))
    assert one.reward == again.reward != other.reward
    assert one.selected is not None
    assert again.selected is not None
    for found, expected in zip(one.selected[1:], again.selected[1:], strict=True):
        assert found.equal(expected)
    assert one.selected[0].target_out.equal(again.selected[0].target_out)


def test_samples_of_a_sentence_differ(trainer: Trainer) -> None:
    sources: dict[tuple[int, ...], set[Any]] = {
        tuple(source): set() for source, _ in some_batch(trainer.prepared).pairs()
    }
    samples = samples_of(trainer, "1")
    assert samples.selected is not None
    for source, sample in samples.selected[0].pairs():
        sources[tuple(source)].add(tuple(sample))
    assert samples.sentences == len(sources) == 5
    assert all(len(found) <= SAMPLES for found in sources.values())
    assert max(map(len, sources.values())) > 1


@pytest.mark.parametrize("chosen", ["wait-k:2", "full", "wait-k:2,unit=piece", "wait-k:3,c=0.25"])
def test_samples_are_trained_with_the_delays_of_their_decoding(
    trainer: Trainer, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """g of the training pass equals the reads of each piece in decoding."""
    found = []
    monkeypatch.setattr(minimum_risk, "decode", lambda *arguments: found.extend(decode(*arguments)) or found)
    samples = samples_of(trainer, "3", policy=policy(chosen))
    reads = {tuple(hypothesis.pieces): hypothesis.reads for hypothesis in found}
    assert samples.selected is not None
    batch, g, _ = samples.selected
    assert batch.size
    for row, (_, sample) in enumerate(batch.pairs()):
        assert g[row, : len(sample)].tolist() == reads[tuple(sample.tolist())]


@pytest.mark.parametrize("kind", ["causal", "prefix", "rnn"])
def test_samples_at_a_low_temperature_equal_greedy_decoding(trainer: Trainer, toy_config: Path, kind: str) -> None:
    """Each sentence is encoded once for its samples, so this also checks that rows and sentences match."""
    model = {"rnn": "model.kind=rnn"}.get(kind, f"model.encoder={kind}")
    quick = [f"{name}={value}" for name, value in QUICK.items()]
    settings = config.load(toy_config, [*quick, "train.samples=3", "train.temperature=0.01", "policy=wait-k:2", model])
    prepared = trainer.prepared
    built = build_model(settings.model, prepared.source, prepared.target, settings.text.shared).eval()
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(minimum_risk, "decode", lambda *arguments: found.extend(decode(*arguments)) or found)
        MinimumRisk(settings, prepared, policy(settings.policy)).sample(built, some_batch(prepared), "5")
    ends = prepared.source.ends_word
    sources = Sources.of([source for source, _ in some_batch(prepared).pairs()], ends, "word")
    expected = decode(TorchEngine(built), sources, Rules(ends, policy("wait-k:2")))
    drawn = [one.pieces for one in found]
    same = [drawn[3 * n + i][:3] == greedy.pieces[:3] for n, greedy in enumerate(expected) for i in range(3)]
    assert sum(same) >= 0.8 * len(same)  # in an untrained model the two most likely pieces may be nearly equal


def test_repeated_rows_have_the_logits_of_single_rows(trainer: Trainer) -> None:
    pairs = some_batch(trainer.prepared).pairs()
    ends = trainer.prepared.source.ends_word
    repeated = collate([pair for pair in pairs for _ in range(3)], ends, ends, "word")
    once = collate(pairs, ends, ends, "word")
    model = trainer.model.eval()
    with torch.inference_mode():
        several, single = (
            model(batch, scheduled([policy("wait-k:2")] * batch.size, batch)) for batch in (repeated, once)
        )
    for row in range(len(several)):
        torch.testing.assert_close(several[row], single[row // 3], atol=1e-5, rtol=1e-5)


def test_an_update_makes_better_samples_more_likely(trainer: Trainer, copy_run: Path, tmp_path: Path) -> None:
    more = ("train.references=0", "train.rate=1e-4", "train.warmup=0")
    own = started(copy_run, tmp_path, trainer.prepared, *more)
    batch = some_batch(trainer.prepared)
    own.position.step = 1
    samples = own._sample([batch], [own.world.seed(f"{own.settings.seed} 1 0")])[0]
    assert samples is not None
    assert samples.selected is not None
    sampled, g, weights = samples.selected

    def objective() -> float:
        own.model.eval()
        with torch.inference_mode():
            return float(loss_of(own.model, sampled, g, 0.0, weights).smoothed)

    before = objective()
    assert own.update([batch]).reward == samples.reward
    assert objective() < before


def test_better_samples_have_higher_weights(trainer: Trainer) -> None:
    references = {tuple(source): target for source, target in some_batch(trainer.prepared).pairs()}
    selected = samples_of(trainer, "4").selected
    assert selected is not None
    assert trainer.minimum_risk is not None
    batch, _, weights = selected
    by_source: dict[tuple[int, ...], list[Any]] = {}
    for (source, sample), weight in zip(batch.pairs(), weights.tolist(), strict=True):
        reward = trainer.minimum_risk.reward(sample, references[tuple(source)])
        by_source.setdefault(tuple(source), []).append((reward, weight))
    for found in by_source.values():
        assert sorted(found) == sorted(found, key=lambda one: one[::-1])
    assert any(len(set(found)) > 1 for found in by_source.values())


def test_overlong_samples_are_not_trained_on(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimum_risk, "is_too_long", lambda sample, reference: True)
    assert samples_of(trainer, "6").selected is None
    monkeypatch.undo()
    assert minimum_risk.is_too_long(np.zeros(100), np.zeros(20))
    assert not minimum_risk.is_too_long(np.zeros(30), np.zeros(20))


def test_the_reward_is_one_for_the_reference_and_lower_for_less(trainer: Trainer) -> None:
    assert trainer.minimum_risk is not None
    reward = trainer.minimum_risk.reward
    _, target = trainer.prepared.train[0]
    assert reward(target, target) == pytest.approx(1)
    assert reward(target[: len(target) // 2], target) < 0.9
    assert reward(target[:0], target) == 0


def test_two_threads_give_the_same_bits_each_time(trainer: Trainer, copy_run: Path, tmp_path: Path) -> None:
    """Each thread has its own sentences; both sample with the weights before the update."""
    found = []
    for _ in range(2):
        two = started(copy_run, tmp_path, trainer.prepared, "train.threads=2", "model.dropout=0.2")
        assert two.threads.count == 2
        for step in (1, 2):
            two.position.step = step
            assert two.update(two.batches(trainer.prepared.train, np.arange(20))).sentences == 20
        found.append(torch.cat([parameter.detach().flatten() for parameter in two.model.parameters()]))
    assert found[0].equal(found[1])


def test_a_model_learns_from_its_own_samples_alone(tmp_path: Path, toy_config: Path) -> None:
    """The weight of the references is 0; they are used for the rewards only."""
    # Partly trained: samples that are all right or all wrong would have equal rewards.
    short = ("--set", "train.steps=46", "--set", "train.threads=1")
    young = stacl("train", toy_config, "--out", tmp_path / "young", *short)
    assert young.returncode == 0, young.stderr
    options = {
        "model.start": tmp_path / "young",
        "train.samples": 6,
        "train.references": 0,
        "train.budget": 512,
        "train.rate": 1e-3,
        "train.warmup": 0,
        "train.schedule": "constant",
        "train.steps": 60,
        "train.validate_every": 20,
        "train.average": 1,
        "train.threads": 1,
    }
    chosen = [part for item in options.items() for part in ("--set", "=".join(map(str, item)))]
    done = stacl("train", toy_config, "--out", tmp_path / "tuned", *chosen)
    assert done.returncode == 0, done.stderr
    logs = [(tmp_path / run / "log.jsonl").read_text().splitlines() for run in ("young", "tuned")]
    before, *after = (json.loads(line) for line in (logs[0][-1], *logs[1]))
    assert 5 < before["bleu"] < 80  # there is room for improvement
    assert after[-1]["bleu"] > before["bleu"] + 5
    assert after[-1]["nearness"] > after[0]["nearness"]


def test_minimum_risk_training_resumes_to_the_same_weights(tmp_path: Path, toy_config: Path) -> None:
    run = changes(
        policy="wait-k:1-4",
        model__dropout=0.1,
        train__samples=3,
        train__budget=256,
        train__schedule="constant",
        train__warmup=0,
        train__validate_every=4,
        train__save_every=2,
        train__bleu_lines=0,
    )
    for folder, steps in (("whole", 8), ("resumed", 4)):
        done = stacl("train", toy_config, "--out", tmp_path / folder, *run, "--set", f"train.steps={steps}")
        assert done.returncode == 0, done.stderr
    done = stacl("train", "--resume", "--out", tmp_path / "resumed", "--set", "train.steps=8")
    assert done.returncode == 0, done.stderr
    assert "select by BLEU" in done.stderr
    whole, resumed = (
        load_tensors(tmp_path / folder / "checkpoints" / "00000008" / "weights.safetensors")
        for folder in ("whole", "resumed")
    )
    assert whole.keys() == resumed.keys()
    assert all(whole[name].equal(resumed[name]) for name in whole)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("train.samples=1", "compared with each other"),
        ("train.samples=-1", "train.samples must be a whole number from 0"),
        ("train.temperature=0", "train.temperature must be a number from 0.01"),
        ("train.references=-0.1", "train.references must be a number, 0.0 or more"),
    ],
)
def test_errors_name_the_field(toy_config: Path, change: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        config.load(toy_config, ["train.samples=4", change])
