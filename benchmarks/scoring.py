"""Time and memory of `stacl score` for each format, on one core.

    python benchmarks/scoring.py [--sentences 1000000] [--formats rw trace simuleval]

The log contains random paths of newspaper length: 27 source and 27 target words on average, as in the authors' 3,000
sentences. It is written to a temporary file and scored in a separate process. Memory is also measured at a tenth of the
sentences: if both are equal, memory does not grow. On a busy machine use the CPU time.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from stacl.traces import logs
from stacl.traces.trace import Trace


def traces(count: int) -> Iterator[Trace]:
    """`count` sentences with words: five thousand different paths, repeated."""
    chance = random.Random(0)
    stock = []
    for _ in range(min(count, 5000)):
        source, target = chance.randint(4, 50), chance.randint(4, 50)
        delays = sorted(min(source, chance.randint(1, source + 3)) for _ in range(target))
        words = tuple(f"word{chance.randint(0, 999)}" for _ in range(target))
        stock.append(Trace(source, tuple(delays), source=("Wort",) * source, target=words))
    for number in range(count):
        yield stock[number % len(stock)]


def score(path: Path, count: int) -> tuple[float, float, float]:
    """Wall-clock seconds, CPU seconds and megabytes of one `stacl score`."""
    program = (
        "import resource, sys, time; from stacl.__main__ import main; code = main(sys.argv[1:]); "
        "used = resource.getrusage(resource.RUSAGE_SELF); "
        "print(time.process_time(), used.ru_maxrss, file=sys.stderr); sys.exit(code)"
    )
    begin = time.perf_counter()
    command = [sys.executable, "-c", program, "score", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds = time.perf_counter() - begin
    if f"{count} sentences" not in done.stdout:
        raise SystemExit(f"expected {count} sentences, not: {done.stdout.splitlines()[0]}")
    processor, kilobytes = done.stderr.split()[-2:]
    return seconds, float(processor), int(kilobytes) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sentences", type=int, default=1_000_000)
    parser.add_argument("--formats", nargs="+", choices=logs.FORMATS, default=["rw", "trace"])
    args = parser.parse_args()
    print(f"{'format':10} {'sentences':>10} {'seconds':>8} {'CPU s':>10} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for format in args.formats:
            for count in (args.sentences // 10, args.sentences):
                path = Path(folder) / format
                logs.write(traces(count), path, format)
                seconds, processor, megabytes = score(path, count)
                path.unlink()
                print(f"{format:10} {count:10} {seconds:8.1f} {processor:10.1f} {megabytes:8.0f}", flush=True)


if __name__ == "__main__":
    main()
