"""Speed of a training step, compared with a plain torch.nn.Transformer loop and, optionally, OpenNMT-py.

    python -m benchmarks.training --root FOLDER                   # FOLDER contains deen-small (Multi30k)
    python -m benchmarks.training --root FOLDER --opennmt /path/to/other/python
    python -m benchmarks.training --pairs 10000000                # time to make the batches of an epoch

Width 256, 3+3 layers, inner width 512, 4 heads, 8,000 pieces, dropout 0.1, batches of 4,096 positions. Every system is
a separate process. They take turns step by step, so other load on the machine affects all equally. The ratios are
medians over consecutive steps. OpenNMT-py runs its own command in its own environment, without its start-up time;
stacl is measured just before and after it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from stacl import config
from stacl.models.batch import Encoded, epoch_batches
from stacl.runs.folder import RunFolder
from stacl.training.prepare import prepare

ROOT = Path(__file__).resolve().parents[1]
CONFIG = ROOT / "configs" / "multi30k-de-en.toml"
SIZES = {"text.vocabulary": 8000, "model.preset": "small", "model.dropout": 0.1}
WARM_UP = 3  # steps that are not counted


class Worker:
    """One system in its own process, which makes a step on request."""

    def __init__(self, name: str, folder: Path, threads: int, clock: str) -> None:
        command = [sys.executable, "-m", "benchmarks.training_workers", name, str(folder), str(threads), clock]
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
        )
        self.steps: list[dict[str, float]] = []

    def step(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("step\n")
        self.process.stdin.flush()
        self.steps.append(json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()

    def rate(self) -> float:
        """Positions per second without padding: the median of the steps."""
        return statistics.median(step["positions"] / step["seconds"] for step in self.steps[WARM_UP:])

    def times(self, other: Worker) -> float:
        """The time for a position relative to `other`: the median over rounds."""
        rounds = list(zip(self.steps, other.steps, strict=True))[WARM_UP:]
        return statistics.median(
            (one["seconds"] / one["positions"]) / (two["seconds"] / two["positions"]) for one, two in rounds
        )

    def megabytes(self) -> float:
        return max(step["megabytes"] for step in self.steps)


def measure(names: list[str], folder: Path, args: argparse.Namespace, steps: int) -> dict[str, Worker]:
    workers = {name: Worker(name, folder, args.threads, args.clock) for name in names}
    try:
        for number in range(steps + WARM_UP):
            for worker in workers.values():
                worker.step()
            print(f"\rround {number + 1} of {steps + WARM_UP}", end="", file=sys.stderr, flush=True)
    finally:
        for worker in workers.values():
            worker.close()
    print(file=sys.stderr)
    return workers


def prepared(root: str, folder: Path) -> Path:
    """A run folder with the vocabulary and the encoded corpus."""
    settings = config.load(CONFIG, [f"{name}={value}" for name, value in SIZES.items()] + [f"data.root={root}"])
    folder.mkdir(parents=True, exist_ok=True)
    config.save(settings, folder / "config.toml")
    prepare(settings, RunFolder(folder), lambda text: print(text, file=sys.stderr))
    return folder


OPENNMT = """
save_data: {work}/save
src_vocab: {work}/vocabulary
tgt_vocab: {work}/vocabulary
share_vocab: true
data:
  train:
    path_src: {work}/source
    path_tgt: {work}/target
save_model: {work}/model
save_checkpoint_steps: 100000
train_steps: {steps}
valid_steps: 100000
report_every: 10
seed: 1
num_workers: 0
bucket_size: 29000
batch_type: tokens
batch_size: 2048
normalization: tokens
optim: adam
learning_rate: 0.0001
adam_beta2: 0.98
max_grad_norm: 1
label_smoothing: 0.1
dropout: 0.1
attention_dropout: 0.0
encoder_type: transformer
decoder_type: transformer
position_encoding: true
enc_layers: 3
dec_layers: 3
heads: 4
hidden_size: 256
word_vec_size: 256
transformer_ff: 512
share_embeddings: true
share_decoder_embeddings: true
"""


def opennmt(python: str, folder: Path, args: argparse.Namespace) -> float:
    """Source and target pieces per second of OpenNMT-py's own command, without its start-up time."""
    data, (pieces, _) = Encoded(folder / "data" / "train"), RunFolder(folder).vocabularies()
    with tempfile.TemporaryDirectory() as work:
        home = Path(work)
        with (home / "source").open("w") as source, (home / "target").open("w") as target:
            for number in range(len(data)):  # pieces as numbers, which OpenNMT-py cannot split further
                for file, side in zip((source, target), data[number], strict=True):
                    file.write(" ".join(map(str, side.tolist())) + "\n")
        (home / "vocabulary").write_text("".join(f"{piece}\t1\n" for piece in range(4, len(pieces))))
        short, long = (opennmt_run(python, home, steps, args) for steps in (10, 10 + 2 * args.steps))
    return (long[0] - short[0]) / (long[1] - short[1])


def opennmt_run(python: str, home: Path, steps: int, args: argparse.Namespace) -> tuple[float, float]:
    """Pieces of all steps and seconds of the whole command."""
    (home / "config.yaml").write_text(OPENNMT.format(work=home, steps=steps))
    environment = os.environ | {"OMP_NUM_THREADS": str(args.threads)}
    began, computed = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [python, "-m", "onmt.bin.train", "-config", str(home / "config.yaml")],
        capture_output=True,
        text=True,
        env=environment,
    )
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = {
        "wall": time.perf_counter() - began,
        "computing": spent.ru_utime + spent.ru_stime - computed.ru_utime - computed.ru_stime,
    }
    log = done.stdout + done.stderr
    # bsz: mean source pieces, target pieces and sentences of the ten batches before each report
    sizes = [int(one) + int(other) for one, other in re.findall(r"bsz:\s*(\d+)/\s*(\d+)/", log)]
    if done.returncode or not sizes:
        raise SystemExit(f"OpenNMT-py failed:\n{log[-2000:]}")
    return 10.0 * sum(sizes), seconds[args.clock]


def row(name: str, value: str, ratio: str = "", bar: str = "") -> None:
    print(f"| {name} | {value} | {ratio} | {bar} |")


def report(found: dict[str, Worker], long: dict[str, Worker], signature: str) -> None:
    full, wait, plain = found["full"], found["wait-3"], found["plain"]
    print(f"\n{signature}\n")
    row("system", "source+target pieces/s", "ratio", "bar")
    row("---", "---:", "---:", "---")
    row("stacl, causal, full sentence", f"{full.rate():,.0f}")
    ratio = f"{wait.times(full):.2f} x the full step"
    row("stacl, causal, wait-3", f"{wait.rate():,.0f}", ratio, "at most 1.05")
    row("stacl, RNN, wait-3", f"{found['rnn'].rate():,.0f}")
    ratio = f"stacl is {plain.times(full):.2f} x as fast"
    row("torch.nn.Transformer, plain loop", f"{plain.rate():,.0f}", ratio, "at least 1.7")
    causal, prefix = long["long causal"], long["long prefix"]
    row("stacl, causal, wait-3, 20-word sentences", f"{causal.rate():,.0f}")
    ratio = f"{prefix.times(causal):.2f} x the causal step"
    row("stacl, prefix, wait-3, 20-word sentences", f"{prefix.rate():,.0f}", ratio, "at most 6")
    row("matrix products of this machine", f"{found['matrix product'].rate() / 1e9:,.0f} GFLOP/s")
    row("peak memory of a causal wait-3 step", f"{wait.megabytes():,.0f} MB")


def report_batching(pairs: int) -> None:
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(4, 6, (pairs, 1)) + rng.normal(0, 3, (pairs, 2)), 1, 400).astype(np.uint16)
    began = time.perf_counter()
    batches = epoch_batches(lengths, 4096, 1, 0)
    print(f"{pairs:,} pairs in {len(batches):,} batches: {time.perf_counter() - began:.1f} s an epoch")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", metavar="FOLDER", help="the folder that contains deen-small")
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="CPU threads of every system (2)")
    parser.add_argument("--steps", type=int, default=20, metavar="N", help="measured steps of every system (20)")
    parser.add_argument(
        "--clock",
        choices=("wall", "computing"),
        default="wall",
        help="computing: CPU time of the process, for one thread on a busy machine (wall)",
    )
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="keep the encoded corpus in this folder")
    parser.add_argument("--opennmt", metavar="PYTHON", help="a Python with OpenNMT-py installed")
    parser.add_argument("--pairs", type=int, metavar="N", help="only make the batches of N generated pairs")
    args = parser.parse_args()
    if args.pairs:
        report_batching(args.pairs)
        return
    if not args.root:
        parser.error("--root FOLDER is required: the folder that contains deen-small")
    with tempfile.TemporaryDirectory() as scratch:
        folder = prepared(args.root, args.work or Path(scratch))
        names = ["full", "wait-3", "plain", "rnn", "matrix product"]
        found = measure(names, folder, args, args.steps)
        long = measure(["long causal", "long prefix"], folder, args, max(3, args.steps // 2))
        report(found, long, f"{args.threads} threads, {args.steps} steps each, clock: {args.clock}")
        if args.opennmt:
            peer = opennmt(args.opennmt, folder, args)
            after = measure(["full"], folder, args, args.steps)["full"].rate()
            own = (found["full"].rate() + after) / 2
            row(
                "OpenNMT-py",
                f"{peer:,.0f}",
                f"stacl ({own:,.0f}) is {own / peer:.2f} x as fast",
                "at least 1.5",
            )


if __name__ == "__main__":
    main()
