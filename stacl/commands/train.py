"""Train a model under a reading policy, from one TOML config.

  stacl train configs/toy.toml
  stacl train configs/multi30k-de-en.toml --set policy=wait-k:5 --set train.seed=2 --out runs/wait5
  stacl train --resume --out runs/wait5
  torchrun --nproc-per-node 2 -m stacl train configs/toy.toml   # two processes; see docs/training.md

The run folder holds all that is needed to use the model, or to go on: a run that was killed resumes to bit-identical
weights. --fields prints every field of a config with its default and what it means.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stacl import config
from stacl.engines import onnx
from stacl.policies.base import policy
from stacl.support.errors import UserError
from stacl.support.files import remove, sole_use, write_text_atomically

if TYPE_CHECKING:
    from stacl.training.distributed import World

SCHEDULE = "schedule.json"  # the outline of the policy that a run was begun under: a file of one's own may be edited
_FIXED = ("seed", "optimizer")  # with another one, what was trained before is no beginning of this run


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="?", type=Path, metavar="CONFIG", help="a TOML file; see configs/")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="A.B=C",
        help="change a field, e.g. --set train.rate=5e-4",
    )
    parser.add_argument("--out", type=Path, metavar="RUN", help="run folder (default: runs/ and the config's name)")
    parser.add_argument("--resume", action="store_true", help="go on from the run folder's last checkpoint")
    parser.add_argument("--fields", action="store_true", help="print all fields of a config and stop")


def run(args: argparse.Namespace) -> int:
    if args.fields:
        print(config.describe())
        return 0
    if args.config is None and not (args.resume and args.out):
        raise UserError("a config is needed, for example configs/toy.toml; or --resume --out RUN to go on")
    folder = args.out or Path("runs") / args.config.stem
    settings = _settings(args, folder)
    policy(settings.policy)  # a mistake in one's own is said before any work is done

    from stacl.training.distributed import world

    with world() as processes, sole_use(folder, "training") if processes.first else contextlib.nullcontext():
        return _train(settings, folder, args.resume, processes)


def _train(settings: config.Config, folder: Path, resume: bool, world: World) -> int:
    from stacl.training.prepare import prepare
    from stacl.training.trainer import Trainer, choose_device

    choose_device(settings.train.device, world.local)  # says so if there is none, before any work is done

    def say(text: str) -> None:
        if world.first:
            print(text, file=sys.stderr)

    if world.first:
        _claim(folder, settings, resume)
    prepared = world.first_then_all(lambda: prepare(settings, folder, say))
    trainer = Trainer(settings, folder, prepared, world)
    if trainer.resume():
        say(f"resumed {folder} at step {trainer.position.step:,}")
    if trainer.position.finished:
        say(f"{folder} has finished already: {trainer.position.finished}")
        return 0
    if world.first:
        own = folder / "config.toml"
        for name, old, new in _changes(config.load(own), settings):
            say(f"train.{name} is {new} from here on; it was {old}")
        config.save(settings, own)  # not before it is known that the run can go on so
        write_text_atomically(folder / SCHEDULE, json.dumps(trainer.policy.outline()) + "\n")
    size = sum(p.numel() for p in trainer.model.parameters())
    together = f", {world.size} processes" if world.size > 1 else ""
    say(f"{folder}: {settings.policy}, {size / 1e6:.1f} M parameters, {trainer.device}{together}")
    try:
        trainer.fit()
    except KeyboardInterrupt:
        say(f"\nstopped; `stacl train --resume --out {folder}` goes on from the last checkpoint")
        return 130
    if world.first:
        print(folder)
    return 0


def _settings(args: argparse.Namespace, folder: Path) -> config.Config:
    """The given config, or, resuming, the one of the run with changes that do not make it another run."""
    own = folder / "config.toml"
    if not (args.resume and own.exists()):
        if args.config is None:
            raise UserError(f"{folder} is no run folder: it has no config.toml")
        return config.load(args.config, args.set)
    begun = config.load(own)
    wanted = config.load(args.config or own, args.set)
    for section in ("data", "text", "model"):
        old, new = dataclasses.asdict(getattr(begun, section)), dataclasses.asdict(getattr(wanted, section))
        old.pop("root", None), new.pop("root", None)  # the encoded corpus lies in the run folder
        changed = [name for name in old if old[name] != new[name]]
        if section == "model" and not _trained(
            folder
        ):  # it failed at its beginning: mended, it may begin with its data
            changed = [name for name in changed if name == "start"]  # which the vocabulary may come from
        if changed:
            raise UserError(f"{folder} was begun with another {section}.{changed[0]}; --out RUN begins a new run")
    if begun.policy != wanted.policy:
        raise UserError(f"{folder} was begun under {begun.policy}, not {wanted.policy}; --out RUN begins a new run")
    before = None
    with contextlib.suppress(OSError, ValueError):  # a run of before has none, and a damaged one tells nothing
        before = json.loads((folder / SCHEDULE).read_text(encoding="utf-8"))
    now = policy(wanted.policy)
    if before not in (None, now.outline(), now.schedule(100, 100)):  # which is all that older runs have kept
        raise UserError(
            f"{wanted.policy} is not what it was when {folder} was begun: its file was edited, or is another;"
            " put it back, or --out RUN begins a new run"
        )
    for name, _, _ in _changes(begun, wanted):
        if name in _FIXED:
            raise UserError(f"{folder} was begun with another train.{name}; --out RUN begins a new run")
    return wanted


def _trained(folder: Path) -> bool:
    return any((folder / sign).exists() for sign in ("checkpoints", "model.safetensors", onnx.FOLDER))


def _changes(begun: config.Config, wanted: config.Config) -> list[tuple[str, object, object]]:
    """What is trained with from here on that was not before: the field, the old value, the new one."""
    old, new = dataclasses.asdict(begun.train), dataclasses.asdict(wanted.train)
    return [(name, old[name], new[name]) for name in old if old[name] != new[name]]


def _claim(folder: Path, settings: config.Config, resume: bool) -> None:
    """A new run never overwrites an old one; what a failed beginning left behind is no run."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file, no folder for a run; --out RUN names another")
    signs = ("data/train", "checkpoints", "model.safetensors", onnx.FOLDER)
    begun = [sign for sign in signs if (folder / sign).exists()]
    if begun and not resume:
        raise UserError(f"{folder} holds a run already; --resume goes on with it, --out RUN begins another")
    if begun and "data/train" not in begun and "checkpoints" not in begun:
        raise UserError(
            f"{folder} holds a model, but no training that could go on; --out RUN --set model.start={folder} begins one"
        )
    if begun:
        return  # with its vocabulary, even if its data was removed to save space: they are made again from the corpus
    if (folder / "vocabulary").exists() and not (folder / "config.toml").exists():
        raise UserError(f"{folder} has a vocabulary, but is no run; --out RUN names another folder")
    remove(folder / "vocabulary")
    config.save(settings, folder / "config.toml")
