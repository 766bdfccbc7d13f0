"""The position of a run, its running means, its clock and its log."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stacl.models.batch import Batch
from stacl.support.errors import UserError
from stacl.support.files import write_text_atomically
from stacl.text.subwords import PAD

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

_SAVED_AS = {"nll": "surprise", "reward": "nearness"}  # names in checkpoints and log.jsonl, kept for compatibility


@dataclass
class Position:
    """How far a run has come. Saved with every checkpoint."""

    step: int = 0  # updates done
    epoch: int = 0
    batch: int = 0  # batches of this epoch that are done
    seconds: float = 0.0  # training time over all sessions
    best_step: int = 0
    best: float = -math.inf  # best score so far; higher is better
    best_loss: float = math.inf  # decides between validations with the same score
    since_best: int = 0  # validations since the best one
    best_of: str = ""  # the criterion of `best`
    finished: str = ""  # why the run ended; empty while it goes on


@dataclass(frozen=True)
class Update:
    """Figures of one update, summed over all processes."""

    nll: float  # negative log-likelihood of the references
    positions: int  # target positions of the references
    gradient: float  # norm
    reward: float = 0.0  # of the model's own samples, summed over sentences
    sentences: int = 0  # sentences that were sampled


@dataclass
class RunningMeans:
    """Sums since the last validation. Saved with every checkpoint, so that a resumed run logs the same means."""

    nll: float = 0.0
    positions: int = 0
    updates: int = 0
    gradient: float = 0.0
    reward: float = 0.0  # only in minimum risk training
    sentences: int = 0

    @classmethod
    def load(cls, saved: Mapping[str, Any]) -> RunningMeans:
        """From what `save` returned."""
        own = {name: ours for ours, name in _SAVED_AS.items()}
        return cls(**{own.get(name, name): value for name, value in saved.items()})

    def save(self) -> dict[str, float]:
        """The sums under their names in a checkpoint."""
        return {_SAVED_AS.get(name, name): value for name, value in asdict(self).items()}

    def add(self, update: Update) -> None:
        self.nll += update.nll
        self.positions += update.positions
        self.updates += 1
        self.gradient += update.gradient
        self.reward += update.reward
        self.sentences += update.sentences

    def entry(self) -> dict[str, float]:
        """The means under their names in log.jsonl."""
        found = {"train_loss": self.nll / self.positions, "gradient": self.gradient / self.updates}
        return found | ({_SAVED_AS["reward"]: self.reward / self.sentences} if self.sentences else {})

    def __str__(self) -> str:
        reward = f", reward {self.reward / self.sentences:.3f}" if self.sentences else ""
        return f"loss {self.nll / self.positions:.3f}{reward}"


class Clock:
    """Training time over all sessions of a run, and the speed of this session."""

    def __init__(self, position: Position) -> None:
        self._position, self._before = position, position.seconds
        self._begin = time.monotonic()
        self._pieces = 0

    def count(self, batches: list[Batch]) -> None:
        """Count the pieces of these batches as done."""
        self._pieces += sum(int(batch.real.sum()) + int((batch.source != PAD).sum()) for batch in batches)
        self.stop()

    def stop(self) -> None:
        """Write the training time into the position."""
        self._position.seconds = self._before + time.monotonic() - self._begin

    def speed(self, processes: int = 1) -> str:
        """The estimated speed of all processes; each does about the same amount of work."""
        return f"{processes * self._pieces / max(1e-9, time.monotonic() - self._begin):,.0f} pieces/s"


class TrainingLog:
    """log.jsonl: one line per validation. A resumed run drops the lines after its checkpoint."""

    def __init__(self, path: Path, step: int) -> None:
        self._path = path
        kept = []
        if path.exists():
            for number, line in enumerate(path.read_bytes().splitlines(), start=1):
                with contextlib.suppress(ValueError):  # a kill may have cut the last line
                    if _step(json.loads(line), f"{path}:{number}") <= step:
                        kept.append(line.decode() + "\n")
        write_text_atomically(path, "".join(kept))
        self._board = _tensorboard(path.parent)

    def write(self, entry: dict[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        if self._board:
            for name, value in entry.items():
                if isinstance(value, int | float) and name != "step":
                    self._board.add_scalar(name, value, entry["step"])

    def close(self) -> None:
        if self._board:
            self._board.close()


def _step(entry: object, where: str) -> int:
    if not isinstance(entry, dict) or type(entry.get("step")) is not int:
        raise UserError(f"{where} is not an entry of a training log: it has no step; remove the line to continue")
    return int(entry["step"])


def _tensorboard(folder: Path) -> SummaryWriter | None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder / "tensorboard"))
