"""Where a run is, what it has seen since the last validation, how long it took, and its log."""

from __future__ import annotations

import contextlib
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stacl.models.batch import Batch
from stacl.support.errors import UserError
from stacl.support.files import write_text_atomically
from stacl.text.subwords import PAD


@dataclass
class Position:
    """Where a run is. Saved with every checkpoint."""

    step: int = 0  # updates made
    epoch: int = 0
    batch: int = 0  # batches of this epoch that are done
    seconds: float = 0.0  # trained so far, all sessions together
    best_step: int = 0
    best: float = -math.inf  # higher is better, whatever it is
    best_loss: float = math.inf  # decides between validations that are as good
    since_best: int = 0  # validations
    best_of: str = ""  # what `best` measures
    finished: str = ""  # why the run ended, once it has


@dataclass(frozen=True)
class Update:
    """What one step saw, summed over all processes."""

    surprise: float
    positions: int  # of the references
    gradient: float  # its norm
    nearness: float = 0.0  # of the model's own translations, summed over sentences
    sentences: int = 0  # that it translated


@dataclass
class Tally:
    """Sums since the last validation. Saved with every checkpoint, so that the log does not show a kill."""

    surprise: float = 0.0
    positions: int = 0
    updates: int = 0
    gradient: float = 0.0
    nearness: float = 0.0  # of the model's own translations, where it learns from them
    sentences: int = 0

    def add(self, update: Update) -> None:
        self.surprise += update.surprise
        self.positions += update.positions
        self.updates += 1
        self.gradient += update.gradient
        self.nearness += update.nearness
        self.sentences += update.sentences

    def means(self) -> dict[str, float]:
        found = {"train_loss": self.surprise / self.positions, "gradient": self.gradient / self.updates}
        return found | ({"nearness": self.nearness / self.sentences} if self.sentences else {})

    def said(self) -> str:
        """What the line of progress shows of it."""
        means = self.means()
        near = f", nearness {means['nearness']:.3f}" if self.sentences else ""
        return f"loss {means['train_loss']:.3f}{near}"


class Clock:
    """Time trained, over all sessions of a run, and the speed of this one."""

    def __init__(self, here: Position) -> None:
        self.here, self.before = here, here.seconds
        self.begin = time.monotonic()
        self.pieces = 0

    def count(self, batches: list[Batch]) -> None:
        self.pieces += sum(int(batch.real.sum()) + int((batch.source != PAD).sum()) for batch in batches)
        self.stop()

    def stop(self) -> None:
        self.here.seconds = self.before + time.monotonic() - self.begin

    def speed(self, processes: int = 1) -> str:
        """Of all processes together, as far as this one knows: each does about the same."""
        return f"{processes * self.pieces / max(1e-9, time.monotonic() - self.begin):,.0f} pieces/s"


class Log:
    """log.jsonl: one line a validation. A resumed run drops what came after its checkpoint: it happens again."""

    def __init__(self, folder: Path, step: int) -> None:
        self.path = folder / "log.jsonl"
        kept = []
        if self.path.exists():
            for number, line in enumerate(self.path.read_bytes().splitlines(), start=1):
                with contextlib.suppress(ValueError):  # a kill may have cut the last line
                    if _step(json.loads(line), f"{self.path}:{number}") <= step:
                        kept.append(line.decode() + "\n")
        write_text_atomically(self.path, "".join(kept))
        self._board = _tensorboard(folder)

    def write(self, entry: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
        if self._board:
            for name, value in entry.items():
                if isinstance(value, int | float) and name != "step":
                    self._board.add_scalar(name, value, entry["step"])

    def close(self) -> None:
        if self._board:
            self._board.close()


def _step(entry: Any, where: str) -> int:
    if not isinstance(entry, dict) or type(entry.get("step")) is not int:
        raise UserError(f"{where} is no entry of a training: it has no step; remove the line to go on")
    return int(entry["step"])


def _tensorboard(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder / "tensorboard"))
