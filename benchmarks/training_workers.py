"""The systems that benchmarks/training.py compares, each in its own process.

A worker makes one step for each line on stdin. It answers with one line of JSON: source and target positions of the
batch without padding, seconds, and peak memory so far.
"""

from __future__ import annotations

import json
import math
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn

from stacl import config
from stacl.models.batch import Batch, Encoded, collate, epoch_batches
from stacl.runs.folder import RunFolder
from stacl.text.subwords import PAD
from stacl.training.prepare import prepare
from stacl.training.trainer import Trainer

BUDGET = 4096
LONG = range(18, 23)  # source words of the sentences that measure the prefix encoder
Step = Callable[[], int]  # makes a training step and returns its positions without padding


class Data:
    """The encoded corpus of a run folder, as batches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source, self.target = RunFolder(folder).vocabularies()
        self.encoded = Encoded(folder / "data" / "train")

    def batch(self, numbers: np.ndarray) -> Batch:
        pairs = [self.encoded[number] for number in numbers.tolist()]
        return collate(pairs, self.source.ends_word, self.target.ends_word, "word")

    def numbers(self, only: Callable[[np.ndarray], bool] | None = None) -> Iterator[np.ndarray]:
        """Endless batches of sentence numbers; `only` selects sentences by their source pieces."""
        chosen = np.arange(len(self.encoded))
        if only is not None:
            chosen = np.array([i for i in chosen.tolist() if only(self.encoded[i][0])])
        epoch = 0
        while True:
            for numbers in epoch_batches(self.encoded.lengths[chosen], BUDGET, 1, epoch):
                yield chosen[numbers]
            epoch += 1

    def is_long(self, pieces: np.ndarray) -> bool:
        return int(self.source.ends_word[pieces].sum()) in LONG

    def batches_sorted_by_source(self) -> Iterator[Batch]:
        """Batches with the same budget, sorted by the length of the source."""
        sides = self.encoded.lengths.astype(np.int64) + 1
        order = np.argsort(sides[:, 0], kind="stable")
        cuts, start = [], 0
        for position in range(len(order)):
            widths = sides[order[start : position + 1]].max(axis=0).sum()
            if (position + 1 - start) * widths > BUDGET:
                cuts.append(position)
                start = position
        batches = np.split(order, cuts)
        rng = random.Random(1)
        while True:
            rng.shuffle(batches)
            yield from (self.batch(numbers) for numbers in batches)


def real_positions(batch: Batch) -> int:
    return int((batch.source != PAD).sum()) + int(batch.real.sum())


def ours(data: Data, spec: str, kind: str = "transformer", encoder: str = "causal", long: bool = False) -> Step:
    """The training step of this package."""
    changes = [f"policy={spec}", f"model.kind={kind}", f"model.encoder={encoder}"]
    settings = config.load(data.folder / "config.toml", [*changes, f"train.threads={torch.get_num_threads()}"])
    trainer = Trainer(settings, RunFolder(data.folder), prepare(settings, RunFolder(data.folder), print))
    batches = data.numbers(data.is_long if long else None)

    def step() -> int:
        trainer.position.step += 1
        some = trainer.batches(data.encoded, next(batches))
        trainer.update(some)
        return sum(real_positions(batch) for batch in some)

    return step


class PlainTransformer(nn.Module):
    """A straightforward torch.nn.Transformer: padded, with logits at every position."""

    def __init__(self, sizes: config.ModelSettings, pieces: int) -> None:
        super().__init__()
        self.width = sizes.width
        self.embedding = nn.Embedding(pieces, sizes.width)
        self.dropout = nn.Dropout(sizes.dropout)
        self.transformer = nn.Transformer(
            sizes.width,
            sizes.heads,
            sizes.encoder_layers,
            sizes.decoder_layers,
            sizes.inner,
            sizes.dropout,
            batch_first=True,
        )
        self.out = nn.Linear(sizes.width, pieces)
        self.out.weight = self.embedding.weight
        places = torch.arange(512)[:, None] * torch.exp(torch.arange(0, sizes.width, 2) * (-9.2 / sizes.width))
        self.register_buffer("places", torch.cat((places.sin(), places.cos()), dim=1))

    def embed(self, pieces: torch.Tensor) -> torch.Tensor:
        places = self.get_buffer("places")[: pieces.shape[1]]
        return self.dropout(self.embedding(pieces) * math.sqrt(self.width) + places)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        states = self.transformer(
            self.embed(source),
            self.embed(target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(target.shape[1], dtype=torch.bool),
            src_key_padding_mask=source == PAD,
            tgt_key_padding_mask=target == PAD,
            memory_key_padding_mask=source == PAD,
            tgt_is_causal=True,
        )
        return self.out(states)


def plain(data: Data) -> Step:
    torch.manual_seed(1)
    sizes = config.load(data.folder / "config.toml").model.resolved()
    model = PlainTransformer(sizes, len(data.target)).train()
    criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    batches = data.batches_sorted_by_source()

    def step() -> int:
        batch = next(batches)
        optimizer.zero_grad()
        logits = model(batch.source, batch.target_in)
        criterion(logits.flatten(0, 1), batch.target_out.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return real_positions(batch)

    return step


def matrix_product(data: Data) -> Step:
    """The peak of the machine. Returns floating-point operations instead of positions."""
    size = 2048
    one, other, out = (torch.randn(size, size) for _ in range(3))

    def step() -> int:
        torch.mm(one, other, out=out)
        return 2 * size**3

    return step


SYSTEMS: dict[str, Callable[[Data], Step]] = {
    "full": lambda data: ours(data, "full"),
    "wait-3": lambda data: ours(data, "wait-k:3"),
    "rnn": lambda data: ours(data, "wait-k:3", kind="rnn"),
    "plain": plain,
    "long causal": lambda data: ours(data, "wait-k:3", long=True),
    "long prefix": lambda data: ours(data, "wait-k:3", encoder="prefix", long=True),
    "matrix product": matrix_product,
}


def main(name: str, folder: str, threads: str, clock: str) -> None:
    torch.set_num_threads(int(threads))
    step = SYSTEMS[name](Data(Path(folder)))
    for _ in sys.stdin:
        began, computed = time.perf_counter(), time.process_time()
        positions = step()
        seconds = {"wall": time.perf_counter() - began, "computing": time.process_time() - computed}[clock]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({"positions": positions, "seconds": seconds, "megabytes": peak}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
