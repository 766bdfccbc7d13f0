"""Speed and memory over an hour of speech in one live session.

About 9,000 words of real text, without line ends, go word by word through one session that finds the sentences itself.
The time of a word is from reading it until everything that it allows is written. An hour of 9,000 words leaves 400 ms
for each.

    python -m benchmarks.hour RUN ../shared/data/deen-eval/newstest2015.de
    python -m benchmarks.hour RUN TEXT --policy wait-k:5 --words 20000 --clock cpu
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before numpy and torch are imported

import numpy as np

from stacl import api
from stacl.live.translator import Translator
from stacl.traces.trace import Trace

WORDS_AN_HOUR = 9000
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass
class Stream:
    """The input, the output and the time of each source word."""

    source: list[str] = field(default_factory=list)  # source words in the traces
    written: int = 0  # target words returned by the session
    traced: int = 0  # target words in the traces
    sentences: list[int] = field(default_factory=list)  # lengths in source words
    milliseconds: list[float] = field(default_factory=list)  # one entry for each source word
    last: float = 0.0  # milliseconds after the end of the source

    def keep(self, trace: Trace) -> None:
        self.source += trace.source
        self.traced += len(trace.target)
        self.sentences.append(trace.source_length)


def words_of(path: Path, count: int) -> list[str]:
    """The first words of a text, which is repeated if it is too short."""
    words = path.read_text(encoding="utf-8").split()
    if not words:
        sys.exit(f"{path} contains no words")
    return (words * (count // len(words) + 1))[:count]


def listen(
    stream: Stream,
    translator: Translator,
    words: Sequence[str],
    policy: str | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[int]:
    """Run one session and record it in `stream`. Yields the number of words read so far after each word."""
    session = translator.stream(policy, segment=True, on_trace=stream.keep)
    for word in words:
        began = clock()
        output = session.feed(word + " ")
        stream.milliseconds.append(1000 * (clock() - began))
        stream.written += len(output)
        yield len(stream.milliseconds)
    began = clock()
    stream.written += len(session.close())
    stream.last = 1000 * (clock() - began)


def memory() -> float:
    """Resident memory of the process in megabytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return float("nan")


def summary(name: str, milliseconds: Sequence[float]) -> str:
    middle, late = np.percentile(milliseconds, [50, 99])
    return f"{name:<12}{np.mean(milliseconds):>9.2f}{middle:>9.2f}{late:>9.2f}{max(milliseconds):>9.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="benchmarks.hour"
    )
    parser.add_argument("model", help="a run folder")
    parser.add_argument("text", type=Path, help="source text")
    parser.add_argument("--policy", help="policy (default: that of the model)")
    parser.add_argument("--words", type=int, default=WORDS_AN_HOUR, help="source words (default 9,000: an hour)")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="wall-clock or CPU time (default wall)")
    args = parser.parse_args()

    translator = api.load(args.model)
    words = words_of(args.text, args.words)
    expected = [part for word in words for part in translator.source_language.split(word)]
    translator.translate(" ".join(words[:30]), args.policy)  # warm-up
    tenth = max(1, len(words) // 10)
    resident = [memory()]
    stream = Stream()
    for count in listen(stream, translator, words, args.policy, CLOCKS[args.clock]):
        if count % tenth == 0:
            resident.append(memory())
    spent = stream.milliseconds

    print(f"{args.model}, {args.policy or translator.policy}, {args.text.name}, {args.clock} clock")
    print(f"in {len(spent):,} words, {len(stream.sentences):,} sentences, longest {max(stream.sentences)} words")
    print(f"out {stream.written:,} words, {stream.written / len(spent):.2f} for each word in")
    lost = "nothing" if stream.source == expected and stream.traced == stream.written else "SOMETHING"
    print(f"{lost} lost: {len(expected):,} words expected, {len(stream.source):,} in the sentences")
    print(f"\n{'ms per word':<12}{'mean':>9}{'median':>9}{'99 %':>9}{'longest':>9}")
    print(summary("first tenth", spent[:tenth]))
    print(summary("last tenth", spent[-tenth:]))
    print(summary("all", spent))
    print(f"\nmedian, last tenth to first: {np.median(spent[-tenth:]) / np.median(spent[:tenth]):.2f}")
    share = sum(spent) / 1000 / (len(words) / WORDS_AN_HOUR * 3600)
    print(f"busy for {share:.1%} of the speaking time at {WORDS_AN_HOUR:,} words an hour")
    print("memory in MB, start and after each tenth: " + " ".join(f"{megabytes:.0f}" for megabytes in resident))
    if lost != "nothing":
        sys.exit(1)


if __name__ == "__main__":
    main()
