"""A run: everything that training needs, and the folder it lies in."""

import hashlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.config.load import Config
from regard.core import parallel
from regard.core.options import AutoSetting
from regard.data.corpus.corpora import Corpus
from regard.data.reading.read import Example
from regard.data.tensors.tree import Tree
from regard.optim.average import Average
from regard.tasks.task import DataCheck, Task


@dataclass
class TrainingState:
    """How far a run is. position: batches of this epoch already used."""

    step: int = 0
    epoch: int = 0
    position: int = 0
    seconds: float = 0.0
    best: float | None = None
    best_step: int = 0
    stale: int = 0
    finished: bool = False
    validated: int = -1
    tenth: int = 0
    pause_until: float = 0.0
    saved: float = 0.0
    scale: float = 65536.0  # what the loss is multiplied by, in half precision
    steady: int = 0  # updates since the scale was changed
    noise: list[float] = field(default_factory=list)  # see noise.py
    window: dict[str, Any] = field(default_factory=dict)  # see log.py


@dataclass
class Run:
    """What is trained, on what, and how far it is."""

    folder: Path
    config: Config
    task: Task
    model: nn.Module
    engine: nn.Module  # what training calls: the model, or the model in touch with other processes
    optimizers: list[torch.optim.Optimizer]
    average: Average
    corpus: Corpus
    dev: list[Example]
    progress: TrainingState
    device: torch.device
    batches: int = 1  # in an update, of all processes together
    check: DataCheck | None = None
    auto_settings: list[AutoSetting] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)  # weights that came from another model
    carry: Tree = None  # what the last batch left for the next, where batches follow each other
    kept: list[torch.Tensor] = field(default_factory=list)  # a gradient: see noise.py
    interrupted: list[int] = field(default_factory=list)  # signals that ask for an end
    order: tuple[int, list[np.ndarray]] | None = None  # of the epoch with this number
    epoch_batches: int = 1
    began: float = 0.0

    def start_clock(self) -> None:
        """Training goes on now, after the seconds it took so far."""
        self.began = time.monotonic() - self.progress.seconds

    def read_clock(self) -> None:
        """Notes in the progress how long training took so far, validation included."""
        self.progress.seconds = parallel.broadcast(time.monotonic() - self.began)

    def weights(self) -> list[nn.Parameter]:
        """The weights that are trained."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    @property
    def lane(self) -> int:
        """Which rows of each batch are this process's, where batches follow each other."""
        return parallel.rank() if self.corpus.sequential else 0

    @property
    def parameters(self) -> int:
        """Trained numbers, tied ones once; of a model that is counted, its tables."""
        trained = sum(parameter.numel() for parameter in self.model.parameters())
        return trained or sum(table.numel() for table in self.model.buffers())


def fingerprints(run: Run) -> dict[str, str]:
    """Digests of the training and the dev examples, in their order."""
    dev = hashlib.sha256()
    for example in run.dev:
        dev.update(repr(example).encode("utf-8", "backslashreplace"))
    return {"training": run.corpus.digest(), "dev": dev.hexdigest()[:32]}


def examples_of(run: Run) -> dict[str, int]:
    """How many examples each part has."""
    return {"training": len(run.corpus), "dev": len(run.dev)}
