"""Write simuleval_paths.json: random read/write paths with what the real SimulEval says about them.

Run with a Python that has SimulEval: `python tests/metrics/make_simuleval_fixture.py`. The file lets the
test of equality run where SimulEval is not installed; where it is, the test asks SimulEval itself, about
other paths.
"""

from __future__ import annotations

import json
import random
from argparse import Namespace
from importlib.metadata import version
from pathlib import Path

FIXTURE = Path(__file__).with_name("simuleval_paths.json")
# Our names for SimulEval's scorers: (scorer, with the reference's length)
SCORERS = {
    "AL": ("AL", False),
    "AL_ref": ("AL", True),
    "LAAL": ("LAAL", True),
    "AP": ("AP", False),
    "AP_ref": ("AP", True),
    "DAL": ("DAL", True),
    "ATD": ("ATD", True),
    "StartOffset": ("StartOffset", True),
    "EndOffset": ("EndOffset", True),
}


def random_paths(count: int, seed: int, longest: int) -> list[tuple[list[int], int, int]]:
    """(delays, source length, reference length): random ones, wait-k, bursts, outputs that stop early."""
    chance = random.Random(seed)
    paths = []
    for number in range(count):
        source, target, reference = (chance.randint(1, longest) for _ in range(3))
        if number % 4 == 0:
            delays = sorted(chance.randint(0, source) for _ in range(target))
        elif number % 4 == 1:
            k = chance.randint(1, source)
            delays = [min(k + t, source) for t in range(target)]
        elif number % 4 == 2:
            steps = sorted({chance.randint(0, source) for _ in range(3)} | {source})
            delays = sorted(chance.choice(steps) for _ in range(target))
        else:
            delays = sorted(chance.randint(0, max(0, source - 1)) for _ in range(target))
        paths.append((delays, source, reference))
    return paths


def simuleval_scores(delays: list[int], source_length: int, reference_length: int) -> dict[str, float]:
    """What SimulEval's scorers give for its own text-to-text instance."""
    from simuleval.data.dataloader import TextToTextDataloader
    from simuleval.evaluator.instance import TextToTextInstance
    from simuleval.evaluator.scorers.latency_scorer import LATENCY_SCORERS_DICT

    words = TextToTextDataloader(["x " * source_length], [" ".join(["y"] * reference_length)])
    instance = TextToTextInstance(0, words, Namespace(eval_latency_unit="word"))
    instance.delays = delays
    return {
        name: float(LATENCY_SCORERS_DICT[scorer](use_ref_len=by_reference)({0: instance}))
        for name, (scorer, by_reference) in SCORERS.items()
    }


def reloaded_atd(delays: list[int], source_length: int) -> float:
    """SimulEval's ATD of the same instance after it was written to instances.log and read again."""
    from simuleval.evaluator.instance import LogInstance
    from simuleval.evaluator.scorers.latency_scorer import LATENCY_SCORERS_DICT

    logged = {
        "index": 0,
        "prediction": " ".join(["y"] * len(delays)),
        "delays": delays,
        "elapsed": [0] * len(delays),
        "prediction_length": len(delays),
        "reference": " ".join(["y"] * len(delays)),
        "source": " ".join(["x"] * source_length),
        "source_length": source_length,
    }
    return float(LATENCY_SCORERS_DICT["ATD"]()({0: LogInstance(json.dumps(logged))}))


def main() -> None:
    rows = []
    for path in random_paths(2000, seed=1, longest=12):
        scores = simuleval_scores(*path)
        rows.append(json.dumps([*path, [round(scores[name], 12) for name in SCORERS]], separators=(",", ":")))
    head = {
        "simuleval": version("simuleval"),
        "names": list(SCORERS),
        "reloaded_ATD": reloaded_atd([3, 4, 5, 6, 6, 6], 6),
    }
    body = ",\n".join(rows)
    FIXTURE.write_text(f'{json.dumps(head)[:-1]}, "paths": [\n{body}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
