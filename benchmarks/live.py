"""Time for each written piece and word in live use with wait-3, compared with CTranslate2.

One process on one core, one thread, batch 1, width 256, 3+3 layers, inner width 512, 4 heads, 8,000 pieces, random
weights. All systems follow the same schedule: before piece t is written, k+t-1 of n source pieces have been read, one
by one. Each writes n pieces; the pieces that are fed back are given, so all write the same number. The systems take
turns, so other load on the machine affects all equally. Use the ratios.

    python -m benchmarks.live                     # omits CTranslate2 if it is not installed
    python -m benchmarks.live --clock wall        # wall-clock time instead of CPU time
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy, torch and CTranslate2 are imported

import numpy as np

K = 3
LENGTHS = (10, 40, 160)
PIECES, BEGIN, END = 8000, 2, 3
WIDTH, INNER, HEADS, LAYERS = 256, 512, 4, 3
PIECES_OF_WORDS = (1, 1, 2, 1, 1, 1, 2, 1)  # 1.25 pieces a word, as 8,000 pieces give for German and English
FAST, FLOAT, CACHED = "stacl ONNX int8", "stacl ONNX float32", "stacl torch"
UNCACHED, PEER, PEER_FLOAT = "stacl torch, no caches", "CTranslate2 int8", "CTranslate2 float32"

# Writes the sentence piece by piece and yields after each.
Driver = Callable[[np.ndarray, np.ndarray], Iterator[None]]
# By length and system: milliseconds of the pieces and of the words.
Results = dict[int, dict[str, tuple[list[float], list[float]]]]


def due(step: int, size: int) -> int:
    """Source pieces read before piece `step` (from 0) is written: g of wait-k."""
    return min(K + step, size)


def engine_driver(engine) -> Driver:
    """An engine of this package, called as a live session calls it."""

    def drive(source: np.ndarray, fed: np.ndarray) -> Iterator[None]:
        state, read = engine.start(), 0
        for step in range(len(fed)):
            while read < due(step, len(source)):
                state = engine.read(state, source[None, read : read + 1])
                read += 1
            state, _ = engine.write(state, fed[step : step + 1])
            yield

    return drive


def uncached_driver(model) -> Driver:
    """The same model without caches: one pass over both prefixes for every piece."""
    import torch

    from stacl.models.batch import Batch

    def drive(source: np.ndarray, fed: np.ndarray) -> Iterator[None]:
        for step in range(len(fed)):
            read = due(step, len(source))
            read_pieces = torch.from_numpy(source[None, :read])
            target = torch.from_numpy(fed[None, : step + 1])
            units = torch.arange(1, read + 1)[None]
            batch = Batch(read_pieces, units, torch.tensor([read]), target, target, target)
            g = torch.tensor([[due(earlier, len(source)) for earlier in range(step + 1)]])
            with torch.inference_mode():
                model.project(model.hidden(batch, g)[:, -1])
            yield

    return drive


def peer_driver(translator) -> Driver:
    """Test-time wait-k over CTranslate2 in its fastest form.

    With `return_alternatives` CTranslate2 decodes the forced prefix in one pass, otherwise piece by piece.
    """

    def drive(source: np.ndarray, fed: np.ndarray) -> Iterator[None]:
        words = [f"p{piece}" for piece in source[:-1]] + ["</s>"]
        prefix = [f"p{piece}" for piece in fed[1:]]
        for step in range(len(fed)):
            read = [words[: due(step, len(words))]]
            options = {"max_decoding_length": step + 1, "beam_size": 1}
            if step:
                options |= {
                    "target_prefix": [prefix[:step]],
                    "return_alternatives": True,
                    "num_hypotheses": 1,
                }
            found = translator.translate_batch(read, **options)[0].hypotheses[0]
            assert step <= len(found) <= step + 1, f"expected {step + 1} pieces, not {len(found)}"
            yield

    return drive


def build_peer(folder: Path, quantization: str | None) -> Driver:
    """A CTranslate2 model of the same size with random weights."""
    import ctranslate2
    from ctranslate2.specs import TransformerSpec, common_spec

    rng = np.random.default_rng(1)
    activation = common_spec.Activation.RELU
    spec = TransformerSpec.from_config((LAYERS, LAYERS), HEADS, pre_norm=True, activation=activation)

    def linear(part, size: int, depth: int) -> None:
        part.weight = (rng.standard_normal((size, depth)) / depth**0.5).astype(np.float32)
        part.bias = np.zeros(size, dtype=np.float32)

    def norm(part) -> None:
        part.gamma, part.beta = np.ones(WIDTH, dtype=np.float32), np.zeros(WIDTH, dtype=np.float32)

    def attention(part, *sizes: int) -> None:
        norm(part.layer_norm)
        for product, size in zip(part.linear, sizes, strict=True):
            linear(product, size, WIDTH)

    def feed_forward(part) -> None:
        norm(part.layer_norm)
        linear(part.linear_0, INNER, WIDTH)
        linear(part.linear_1, WIDTH, INNER)

    table = (rng.standard_normal((PIECES, WIDTH)) / WIDTH**0.5).astype(np.float32)
    encoder, decoder = spec.encoder, spec.decoder
    encoder.embeddings[0].weight = decoder.embeddings.weight = decoder.projection.weight = table
    decoder.projection.bias = np.zeros(PIECES, dtype=np.float32)
    norm(encoder.layer_norm)
    norm(decoder.layer_norm)
    for layer in encoder.layer:
        attention(layer.self_attention, 3 * WIDTH, WIDTH)
        feed_forward(layer.ffn)
    for layer in decoder.layer:
        attention(layer.self_attention, 3 * WIDTH, WIDTH)
        attention(layer.attention, WIDTH, 2 * WIDTH, WIDTH)
        feed_forward(layer.ffn)
    names = ["<unk>", "<s>", "</s>"] + [f"p{piece}" for piece in range(3, PIECES)]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir()
    spec.save(str(folder))
    return peer_driver(
        ctranslate2.Translator(str(folder), compute_type=quantization or "float32", inter_threads=1, intra_threads=1)
    )


def systems(folder: Path) -> dict[str, Driver]:
    import torch

    from stacl.engines.torch import TorchEngine
    from stacl.export.onnx import export_model
    from stacl.models.transformer import Transformer
    from stacl.runs.exported import load_engine

    torch.set_num_threads(1)
    torch.manual_seed(1)
    size = {
        "width": WIDTH,
        "inner": INNER,
        "heads": HEADS,
        "encoder_layers": LAYERS,
        "decoder_layers": LAYERS,
    }
    model = Transformer(PIECES, PIECES, **size, shared=True).eval()
    found = {}
    for name, precision in ((FAST, "int8"), (FLOAT, "float32")):
        export_model(model, folder / precision, precision)
        found[name] = engine_driver(load_engine(folder / precision)[0])
    found[CACHED] = engine_driver(TorchEngine(model))
    found[UNCACHED] = uncached_driver(model)
    try:
        found[PEER] = build_peer(folder / "peer-int8", "int8")
        found[PEER_FLOAT] = build_peer(folder / "peer-float32", None)
    except ImportError:
        print("CTranslate2 is not installed, so it is omitted: pip install -r benchmarks/requirements.txt")
    return found


def timed(drive: Driver, source: np.ndarray, fed: np.ndarray, clock: Callable[[], float]) -> list[float]:
    """Milliseconds for each piece, including the reading before it."""
    marks = [clock()]
    marks += [clock() for _ in drive(source, fed)]
    return [1000 * (after - before) for before, after in itertools.pairwise(marks)]


def by_word(pieces: list[float]) -> list[float]:
    words, start = [], 0
    while start < len(pieces):
        size = PIECES_OF_WORDS[len(words) % len(PIECES_OF_WORDS)]
        words.append(sum(pieces[start : start + size]))
        start += size
    return words


def measure(drivers: dict[str, Driver], rounds: int, clock: Callable[[], float]) -> Results:
    """Milliseconds of all pieces and words of each system at each length. Systems and lengths take turns."""
    rng = np.random.default_rng(1)
    found: Results = {length: {name: ([], []) for name in drivers} for length in LENGTHS}
    for _ in range(rounds):
        for length in LENGTHS:
            source = np.append(rng.integers(4, PIECES, length - 1), END)
            fed = np.append(BEGIN, rng.integers(4, PIECES, length - 1))
            for name, drive in drivers.items():
                timed(drive, source[-LENGTHS[0] :], fed[: LENGTHS[0]], clock)  # warm up the CPU caches
                for _ in range(max(1, LENGTHS[1] // length)):  # more repetitions of short sentences
                    pieces = timed(drive, source, fed, clock)
                    found[length][name][0].extend(pieces)
                    found[length][name][1].extend(by_word(pieces))
    return found


def report(results: Results) -> None:
    lengths = list(results)
    head = " | ".join(f"{length}: piece | p99 | word | p99" for length in lengths)
    print(f"\n| ms, median and 99th percentile | {head} |")
    print("|---|" + "--:|" * (4 * len(lengths)))
    for name in next(iter(results.values())):
        cells = []
        for length in lengths:
            for times in results[length][name]:
                cells += [f"{np.median(times):.2f}", f"{np.percentile(times, 99):.2f}"]
        print(f"| {name} | {' | '.join(cells)} |")
    middle = {(name, n): float(np.median(results[n][name][0])) for n in lengths for name in results[n]}
    print()
    for name in next(iter(results.values())):
        if name != FAST:
            ratios = " / ".join(f"{middle[name, n] / middle[FAST, n]:.1f}" for n in lengths)
            print(f"{FAST} is {ratios} x faster than {name} at {' / '.join(map(str, lengths))} pieces")
    shortest, longest = lengths[0], lengths[-1]
    growth = middle[FAST, longest] / middle[FAST, shortest]
    print(f"growth of {FAST} from {shortest} to {longest}: {growth:.2f} x")
    worst = max(float(np.percentile(results[n][FAST][0], 99)) / middle[FAST, n] for n in lengths)
    print(f"99th percentile of {FAST}: at most {worst:.2f} x its median")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--clock",
        choices=("computing", "wall"),
        default="computing",
        help="CPU or wall-clock time",
    )
    parser.add_argument("--rounds", type=int, default=12, help="rounds of each system at each length (default 12)")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    # CPU time excludes other programs and includes all threads of this process.
    clock = time.process_time if options.clock == "computing" else time.perf_counter
    with tempfile.TemporaryDirectory() as folder:
        drivers = systems(Path(folder))
        print(f"{platform.machine()}, one core, one thread; wait-{K}, batch 1; clock: {options.clock}")
        report(measure(drivers, options.rounds, clock))


if __name__ == "__main__":
    main()
