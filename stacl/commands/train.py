"""Train a model under a reading policy, from one TOML config.

  stacl train configs/toy.toml
  stacl train configs/multi30k-de-en.toml --set policy=wait-k:5 --set train.seed=2 --out runs/wait5
  stacl train --resume --out runs/wait5
  torchrun --nproc-per-node 2 -m stacl train configs/toy.toml   # two processes; see docs/training.md

The run folder holds everything that is needed to use the model or to resume training. A run that was killed and resumed
ends with bit-identical weights. --fields prints every field of a config with its default and its meaning.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stacl import config
from stacl.corpora.base import MissingRootError
from stacl.policies.base import policy
from stacl.runs.folder import RunFolder
from stacl.support.errors import UserError
from stacl.support.files import sole_use

if TYPE_CHECKING:
    from stacl.training.distributed import World


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", type=Path, metavar="CONFIG", help="a TOML file; see configs/")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="A.B=C",
        help="change a field, e.g. --set train.rate=5e-4",
    )
    parser.add_argument("--out", type=Path, metavar="RUN", help="run folder (default: runs/ + name of the config)")
    parser.add_argument("--resume", action="store_true", help="continue from the last checkpoint of the run folder")
    parser.add_argument("--fields", action="store_true", help="print all fields of a config and exit")


def run(args: argparse.Namespace) -> int:
    if args.fields:
        print(config.describe())
        return 0
    if args.config is None and not (args.resume and args.out):
        raise UserError("no config; give one, for example configs/toy.toml, or resume a run with --resume --out RUN")
    run_folder = RunFolder(args.out or Path("runs") / args.config.stem)
    settings = _settings(args, run_folder)
    policy(settings.policy)  # report a mistake in a custom policy before any work is done

    from stacl.training.distributed import world

    with world() as processes, sole_use(run_folder.path, "training") if processes.first else contextlib.nullcontext():
        return _train(settings, run_folder, args.resume, processes)


def _train(settings: config.Config, folder: RunFolder, resume: bool, world: World) -> int:
    from stacl.training.device import choose_device
    from stacl.training.prepare import prepare
    from stacl.training.trainer import Trainer

    choose_device(settings.train.device, world.local)  # report a missing device before any work is done

    def say(text: str) -> None:
        if world.first:
            print(text, file=sys.stderr)

    if world.first:
        folder.claim(settings, resume)
    try:
        prepared = world.first_then_all(lambda: prepare(settings, folder, say))
    except MissingRootError as error:
        raise MissingRootError(error.name, error.folder, "--set data.root=FOLDER") from None
    trainer = Trainer(settings, folder, prepared, world)
    if trainer.resume():
        say(f"resumed {folder} at step {trainer.position.step:,}")
    if trainer.position.finished:
        say(f"{folder} has already finished: {trainer.position.finished}")
        return 0
    if world.first:
        for name, old, new in folder.changed_fields(settings):
            say(f"train.{name} changes from {old} to {new}")
        folder.save_settings(settings)  # only now is it known that the run can continue with them
        folder.save_schedule(trainer.policy)
    size = sum(p.numel() for p in trainer.model.parameters())
    process_note = f", {world.size} processes" if world.size > 1 else ""
    say(f"{folder}: {settings.policy}, {size / 1e6:.1f} M parameters, {trainer.device}{process_note}")
    try:
        trainer.fit()
    except KeyboardInterrupt:
        say(f"\nstopped; continue from the last checkpoint with: stacl train --resume --out {folder}")
        return 130
    if world.first:
        print(folder)
    return 0


def _settings(args: argparse.Namespace, run: RunFolder) -> config.Config:
    """Return the config. When resuming, the run's own config may change only in fields that keep it the same run."""
    if not (args.resume and run.config.exists()):
        if args.config is None:
            raise UserError(f"{run} is not a run folder: it has no config.toml")
        return config.load(args.config, args.set)
    wanted = config.load(args.config or run.config, args.set)
    run.check_resumable(wanted)
    return wanted
