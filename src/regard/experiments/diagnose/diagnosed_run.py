"""The run under diagnosis: its folder, data, model, and samples of train and dev."""

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.config.load import Config
from regard.core import parallel
from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.data.tensors.padded import Batch
from regard.inference.predictor import Predictor
from regard.objectives import Loss
from regard.optim.training_options import Training
from regard.storage.model_folder import not_a_model_message
from regard.storage.run_files import read_config
from regard.storage.run_folder import RunFolder, read_folder
from regard.storage.training_data import read_training_data
from regard.storage.weights import build_for, load_weights
from regard.tasks.task import Task
from regard.training.transfer import freeze

MAX_TRAIN = 4000  # examples sampled per set
MAX_TRIAL = 20_000  # training examples of long trials
SAMPLE = 320  # examples whose loss is computed
ROWS = 32  # examples per batch
WINDOWS = 10  # batches of plain text whose loss is computed


@dataclass
class DiagnosedRun:
    """A run with its data and model.

    train, dev: random samples of the training and dev set. trial: a larger one of the training set.
    """

    folder: Path
    config: Config
    record: RunFolder
    task: Task
    device: torch.device
    train: list[Pair]
    dev: list[Pair]
    trial: list[Pair]
    examples: int  # in the training set
    model: nn.Module | None
    why_no_data: str = ""  # why train and dev are empty
    why_no_model: str = ""  # why the model is None

    @property
    def trained(self) -> nn.Module:
        """Return the trained model in evaluation mode."""
        assert self.model is not None
        return self.model.eval()

    @property
    def predictor(self) -> Predictor:
        """Return a predictor for the model."""
        return Predictor.of(self.task, self.config, self.trained, self.folder)

    @property
    def parts(self) -> dict[str, list[Pair]]:
        """Return the samples of the training and dev set by name."""
        return {"train": self.train, "dev": self.dev}

    @property
    def is_count_model(self) -> bool:
        """Return whether the model has counts instead of weights, such as an n-gram model."""
        return self.model is not None and next(self.model.parameters(), None) is None

    def new_model(self, options: Any = None, training: Training | None = None) -> nn.Module:
        """Return a model as initialized before the first step.

        options, training: replace the options of the run.
        """
        training = training or self.config.training
        torch.manual_seed(training.seed)
        model = self.task.build(options or self.config.model)
        training.init.apply(model)
        freeze(model, training.freeze)
        return model.to(self.device)

    def batches(self, pairs: Sequence[Pair]) -> list[Batch]:
        """Return a sample of the examples as batches, sorted by length.

        Plain text gives at most `WINDOWS` batches.
        """
        corpus = self.task.corpus(pairs[:SAMPLE])
        return [batch.to(self.device) for batch in corpus.sample(ROWS, WINDOWS)]

    def updates(self, pairs: Sequence[Pair], model: nn.Module, tokens: int) -> Iterator[Batch]:
        """Yield training batches endlessly, in the same order on each call."""
        corpus = self.task.reorder_for(self.task.corpus(pairs), model)
        for epoch in itertools.count():
            for rows in corpus.order(tokens, self.config.training.seed, epoch):
                yield corpus.batch(rows).to(self.device)

    @property
    def objective(self) -> Any:
        """Return the objective without label smoothing, so that losses are in nats."""
        objective: Any = self.config.objective
        if getattr(objective, "label_smoothing", 0):
            return objective.model_copy(update={"label_smoothing": 0.0})
        return objective

    def loss_of(self, model: nn.Module, batch: Batch) -> Loss:
        """Return the loss of a batch as training computes it, with label smoothing."""
        objective: Any = self.config.objective
        found: Loss = objective(model, objective.prepare(model, batch))
        return found

    @torch.no_grad()
    def loss(self, model: nn.Module, batches: Sequence[Batch]) -> float | None:
        """Return the mean loss over batches; None without labels or if the loss is not finite."""
        objective = self.objective
        losses = [objective(model, objective.prepare(model, batch)) for batch in batches]
        total, count = sum(float(loss.sum) for loss in losses), sum(loss.count for loss in losses)
        return total / count if count and math.isfinite(total) else None


def read_run(folder: Path) -> DiagnosedRun:
    """Read a run folder; raise UserError if the run cannot be diagnosed."""
    if not folder.is_dir():
        raise UserError(not_a_model_message(folder))
    config = read_config(folder)
    record = read_folder(folder)
    if record.facts.get("imported"):
        raise UserError(
            f"{folder}: imported model: no training to diagnose",
            help=f"regard evaluate {folder} DATA",
        )
    if not record.train and not record.dev:
        raise UserError(
            f"{folder}: metrics.jsonl is empty: nothing to diagnose",
            help="train first: regard train DATA",
        )
    task = config.task.load(folder)
    train, dev, why_no_data = read_training_data(folder, config, task, record.facts)
    device = parallel.device()
    model, why_no_model = _model(folder, config, task, device)
    examples = len(train)
    rng = random.Random(0)
    some, held_out = (rng.sample(part, min(MAX_TRAIN, len(part))) for part in (train, dev))
    trial = rng.sample(train, min(MAX_TRIAL, len(train)))
    samples, why = (some, held_out, trial), (why_no_data, why_no_model)
    return DiagnosedRun(folder, config, record, task, device, *samples, examples, model, *why)


def _model(
    folder: Path, config: Config, task: Task, device: torch.device
) -> tuple[nn.Module | None, str]:
    """Return the best model (otherwise the last checkpoint), and the reason if there is none."""
    paths = [folder / "model.safetensors", folder / "checkpoint" / "model.safetensors"]
    path = next((p for p in paths if p.exists()), None)
    if path is None:
        return None, "no model was saved: training ended before its first validation"
    model = build_for(lambda: task.build(config.model), path).to(device)
    load_weights(model, path)
    return model, ""


def spaced(batches: list[Batch], count: int) -> list[Batch]:
    """Return at most `count` batches, evenly spaced over the list."""
    return batches[len(batches) // (2 * count) :: max(1, len(batches) // count)][:count]
