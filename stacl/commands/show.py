"""Draw a policy: g(t), the read/write string, and a grid of the source words that each target word can see.

- The first line is g(1) .. g(|y|).
- The second line is the order of READ and WRITE.
- The grid has a row per target word and a column per source word. A cell is filled if the source word was read before
  the target word was decided.

  stacl show wait-k:3 --src 6 --tgt 7
  stacl show wait-k:3,ratio=1.25 --src 8 --tgt 10
  stacl show my_policy.py:g --src 6 --tgt 7
"""

from __future__ import annotations

import argparse
import sys

from stacl.policies.base import cut_off, policy
from stacl.support.errors import UserError
from stacl.traces.trace import Trace

LONGEST = 10_000


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "policy", metavar="POLICY", help="full, none, wait-k:3, wait-k:3,c=0.25, confidence:2-6, file.py:Name ..."
    )
    parser.add_argument("--src", type=int, default=6, metavar="N", help="source length |x| (default 6)")
    parser.add_argument("--tgt", type=int, default=7, metavar="N", help="target length |y| (default 7)")
    parser.add_argument("--unit", choices=("word", "piece"), help="unit that the policy counts (default word)")


def run(args: argparse.Namespace) -> int:
    if not (0 <= args.src <= LONGEST and 0 <= args.tgt <= LONGEST):
        raise UserError(f"--src and --tgt must be from 0 to {LONGEST}")
    wanted = policy(args.policy, args.unit)
    shown = wanted.decoding_policy()
    if shown != wanted:
        print(f"{wanted} is a range for training; this shows {shown}", file=sys.stderr)
    if shown.needs_confidence:
        print(f"{shown} also waits while the model is not confident; this shows its lowest latency", file=sys.stderr)
    schedule = shown.schedule(args.src, args.tgt)
    print(" ".join(map(str, schedule)))
    print(Trace(args.src, tuple(schedule)).actions())
    print()
    print(grid(schedule, args.src))
    print(
        f"\n{shown}: unit {shown.unit}, |x| = {args.src}, |y| = {args.tgt}, cut-off step {cut_off(schedule, args.src)}"
    )
    return 0


def grid(schedule: list[int], source_length: int) -> str:
    """Return a row per target unit: ■ where the source unit was read before it was decided, else ·.

    >>> print(grid([1, 2], 2))
           x1 x2
    y1      ■  ·
    y2      ■  ■
    """
    width = max(2, len(f"x{source_length}"))
    lines = ["      " + "".join(f" {f'x{s}':>{width}}" for s in range(1, source_length + 1))]
    for t, read in enumerate(schedule, start=1):
        cells = "".join(f" {'■' if s <= read else '·':>{width}}" for s in range(1, source_length + 1))
        lines.append(f"{f'y{t}':<6}{cells}")
    return "\n".join(lines)
