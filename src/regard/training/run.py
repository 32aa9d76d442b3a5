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
    best_score: float | None = None
    best_step: int = 0
    validations_without_gain: int = 0
    finished: bool = False
    validated_step: int = -1
    last_tenth: int = 0
    next_validation_at: float = 0.0
    saved_seconds: float = 0.0
    loss_scale: float = 65536.0  # what the loss is multiplied by, in half precision
    steps_since_rescale: int = 0  # updates since the scale was changed
    noise_means: list[float] = field(default_factory=list)  # see noise.py
    log_window: dict[str, Any] = field(default_factory=dict)  # see log.py


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
    state: TrainingState
    device: torch.device
    batches: int = 1  # in an update, of all processes together
    check: DataCheck | None = None
    auto_settings: list[AutoSetting] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pretrained_weights: list[str] = field(
        default_factory=list
    )  # weights that came from another model
    carry: Tree = None  # what the last batch left for the next, where batches follow each other
    previous_gradients: list[torch.Tensor] = field(default_factory=list)  # a gradient: see noise.py
    interrupted: list[int] = field(default_factory=list)  # signals that ask for an end
    order: tuple[int, list[np.ndarray]] | None = None  # of the epoch with this number
    epoch_batches: int = 1
    clock_start: float = 0.0

    def start_clock(self) -> None:
        """Training goes on now, after the seconds it took so far."""
        self.clock_start = time.monotonic() - self.state.seconds

    def read_clock(self) -> None:
        """Notes in the progress how long training took so far, validation included."""
        self.state.seconds = parallel.broadcast(time.monotonic() - self.clock_start)

    def weights(self) -> list[nn.Parameter]:
        """The weights that are trained."""
        return [parameter for parameter in self.model.parameters() if parameter.requires_grad]

    @property
    def rng_stream(self) -> int:
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
