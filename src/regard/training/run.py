"""A training run: its model, data, optimizers, state and folder."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.config.load import Config
from regard.core import parallel
from regard.core.options import AutoSetting
from regard.data.corpus.corpora import Corpus
from regard.data.reading.read import Example, Pair
from regard.data.tensors.tree import Tree
from regard.optim.average import Average
from regard.storage.fingerprint import model_digest
from regard.tasks.task import DataCheck, Task
from regard.training.shards import needs_batch


@dataclass
class TrainingState:
    """The values that change during training and are saved in each checkpoint.

    position: number of batches of this epoch already used. seconds: training time so far.
    last_tenth: tenths of the run finished at the last step. next_validation_at: progress at the
    next validation, with a budget (0: not planned yet). saved_seconds: training time of the last
    checkpoint. planned_at, planned_progress: training time, and finished fraction of it, when the
    validations were planned. reserved_seconds: duration of those to come.
    """

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
    validation_seconds: float = 0.0  # duration of the last validation
    saved_seconds: float = 0.0
    planned_at: float = 0.0
    planned_progress: float = 0.0
    reserved_seconds: float = 0.0
    loss_scale: float = 65536.0  # float16: factor applied to the loss
    steps_since_rescale: int = 0  # updates since loss_scale changed
    noise_means: list[float] = field(default_factory=list)  # see gradient_noise.py
    log_window: dict[str, Any] = field(default_factory=dict)  # see log.py
    objective: dict[str, float] = field(default_factory=dict)  # see Objective.advance

    def time_fraction(self, budget: float, seconds: float) -> float:
        """Return the finished fraction of the training time, without the planned validations."""
        training = budget - self.planned_at - self.reserved_seconds
        if training <= 0:
            return 1.0
        done = (seconds - self.planned_at) / training
        return self.planned_progress + (1 - self.planned_progress) * done


@dataclass
class Run:
    """Model, data, optimizers and state of a training run."""

    folder: Path
    config: Config
    task: Task
    model: nn.Module
    engine: nn.Module  # what training calls: the model, or its distributed wrapper
    optimizers: list[torch.optim.Optimizer]
    average: Average
    corpus: Corpus
    dev: list[Example]
    state: TrainingState
    device: torch.device
    batches: int = 1  # per update, over all processes
    check: DataCheck | None = None
    auto_settings: list[AutoSetting] = field(default_factory=list)
    user_settings: frozenset[str] | None = None  # keys set by the recipe or the user, if known
    notes: list[str] = field(default_factory=list)
    pretrained_weights: list[str] = field(
        default_factory=list
    )  # names of weights copied from another model
    # Training examples to fit baselines on, and a note if they are a sample; main process only.
    baseline_data: tuple[Sequence[Pair], str] = ((), "")
    carry: Tree = None  # state carried over to the next batch, for sequential corpora
    previous_gradients: list[torch.Tensor] = field(default_factory=list)  # see gradient_noise.py
    interrupted: list[int] = field(default_factory=list)  # received signals
    order: tuple[int, list[np.ndarray]] | None = None  # epoch index, example indices per batch
    epoch_batches: int = 1
    clock_start: float = 0.0
    reported_at: float | None = None  # training time of the last report

    def start_clock(self) -> None:
        """Start the clock at `state.seconds`, the training time before a resume."""
        self.clock_start = time.monotonic() - self.state.seconds

    def read_clock(self) -> None:
        """Set `state.seconds` to the training time so far, validation included."""
        self.state.seconds = parallel.broadcast(time.monotonic() - self.clock_start)

    def weights(self) -> list[nn.Parameter]:
        """Return the trainable weights."""
        return [weight for _, weight in self.named_weights()]

    def named_weights(self) -> list[tuple[str, nn.Parameter]]:
        """Return the trainable weights with their names."""
        if parallel.world_size() > 1:  # sharding replaces weights
            return named_weights(self.model)
        return self._named_weights

    @cached_property
    def _named_weights(self) -> list[tuple[str, nn.Parameter]]:
        return named_weights(self.model)

    @cached_property
    def needs_batch(self) -> bool:
        """Whether a module computes statistics over all rows, so the batch cannot be split."""
        return needs_batch(self.model)

    @cached_property
    def advancing(self) -> list[Any]:
        """The modules that change with each update, such as random features."""
        return [part for part in self.model.modules() if hasattr(part, "advance")]

    @property
    def rng_stream(self) -> int:
        """Return a number to mix into the seed: the rank if the corpus is sequential, else 0."""
        return parallel.rank() if self.corpus.sequential else 0

    @property
    def parameters(self) -> int:
        """Return the number of parameters, counting tied parameters once.

        For a count-based model, which has no parameters, return the number of table entries.
        """
        trained = sum(parameter.numel() for parameter in self.model.parameters())
        return trained or sum(table.numel() for table in self.model.buffers())


def named_weights(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Return the trainable weights of a model with their names."""
    return [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]


def fingerprints(run: Run) -> dict[str, str]:
    """Return a digest of the training data, the dev data and each teacher, to detect changes."""
    dev = hashlib.sha256()
    for example in run.dev:
        dev.update(repr(example).encode("utf-8", "backslashreplace"))
    teachers = run.config.objective.teachers
    return {
        "training": run.corpus.digest(),
        "dev": dev.hexdigest()[:32],
        **{f"teacher {folder}": model_digest(Path(folder)) for folder in teachers},
    }


def examples_of(run: Run) -> dict[str, int]:
    """Return the number of training examples and of dev examples."""
    return {"training": len(run.corpus), "dev": len(run.dev)}
