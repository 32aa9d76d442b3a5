"""The settings of training."""

import re
from collections.abc import Iterator
from typing import Annotated, Any

import torch
from pydantic import BeforeValidator, Field, model_validator

from regard.core import parallel
from regard.core.data_stats import DataStats
from regard.core.options import AutoSetting, Options
from regard.core.parallel import Kind
from regard.optim.average import Averaging, NoAverage
from regard.optim.init import Default, Init
from regard.optim.optimizers import Adam, AdamW, AutoOptimizer, ClosedForm, Descent, Optimizer
from regard.optim.precision import Precision
from regard.optim.schedules import Cosine, Schedule

EPOCH_TOKENS = 40_000_000  # tokens seen by a run whose length is left open
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: object) -> object:
    """'90s', '10m', '2h', '1h30m' or a number of seconds, as seconds."""
    if not isinstance(text, str):
        return text
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip().lower())
    whole = "".join(a + b for a, b in parts) == re.sub(r"\s+", "", text.lower())
    if not parts or not whole or (len(parts) > 1 and not all(unit for _, unit in parts)):
        raise ValueError(f"{text!r} is no time; write 90s, 10m, 2h or 1h30m")
    return sum(float(number) * UNITS[unit] for number, unit in parts)


class Training(Options):
    """How a model is trained; None is chosen from the data."""

    budget: Annotated[float | None, BeforeValidator(seconds)] = Field(
        None, gt=0, description="time to train for, as 90s, 10m, 2h; the schedule follows the clock"
    )
    steps: int | None = Field(None, gt=0, description="updates")
    epochs: float | None = Field(None, gt=0, description="passes over the data")
    seed: int = Field(1, ge=0, description="of weights, order and dropout")
    batch_tokens: int | None = Field(
        None, gt=0, description="padded tokens of the longer side in a batch, at most"
    )
    accumulation_steps: int = Field(1, gt=0, description="batches in an update, in each process")
    init: Init = Default()
    optimizer: Optimizer = AutoOptimizer()
    lr: float | None = Field(None, gt=0, description="highest learning rate")
    schedule: Schedule = Cosine()
    average: Averaging = NoAverage()
    precision: Precision = Field(
        "float32", description="of products in training; weights stay float32"
    )
    parallel: Kind = Field(
        "ddp", description="with several processes: ddp, all weights in each; fsdp, a part"
    )
    clip_norm: float = Field(1.0, ge=0, description="largest norm of the gradient; 0: no limit")
    clip_value: float = Field(
        0.0, ge=0, description="largest number in the gradient, before `clip_norm`; 0: no limit"
    )
    validate_every: int | None = Field(
        None, gt=0, description="steps between validations; None: ten a run"
    )
    validation_examples: int = Field(
        500, gt=0, description="dev examples used while training, at most"
    )
    checkpoint_every: int | None = Field(
        None, gt=0, description="steps between checkpoints; None: at each validation"
    )
    patience: int | None = Field(
        None, gt=0, description="validations without a better score before training stops"
    )
    tensorboard: bool = Field(
        False, description="event files for TensorBoard in the folder `tensorboard` of the run"
    )
    freeze: list[str] = Field(
        [], description="weights that stay as they are, by the beginning of their names"
    )
    pretrained_lr_factor: float = Field(
        0.3,
        gt=0,
        le=1,
        description="with --init-from: share of the rate for weights that were loaded",
    )

    @model_validator(mode="before")
    @classmethod
    def _adam_by_its_settings(cls, tree: Any) -> Any:
        """An optimizer left open, but with settings that AdamW has, is adamw."""
        given = tree.get("optimizer") if isinstance(tree, dict) else None
        if isinstance(given, dict) and given.get("kind", "auto") == "auto":
            named = set(given) - {"kind"}
            if named and named <= set(AdamW.model_fields):
                return tree | {"optimizer": given | {"kind": "adamw"}}
        return tree

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Once the model has its sizes: first what its dropout waits for, then the rest."""
        if config.model.is_sized:
            yield from self.basics(stats, config) or self._rest(stats, config.model)

    def basics(self, stats: DataStats, config: Any) -> list[AutoSetting]:
        """The optimizer and the size of batches; of models with a single best answer, large steps
        over all data until they end."""
        optimizer: Descent = self.optimizer
        auto_settings, convex = list[AutoSetting](), config.model.is_convex(stats)
        if optimizer.is_auto:
            optimizer, reason = Adam() if convex else AdamW(), stats.reason
            if config.model.closed_form(stats, config.objective):
                optimizer, reason = ClosedForm(), "this model has a closed-form solution"
            elif convex:
                reason = "linear model: no weight decay"
            auto_settings.append(AutoSetting("optimizer.kind", optimizer.kind, reason))
        if not optimizer.stepwise:
            return auto_settings
        values: dict[str, Any] = {"batch_tokens": config.model.default_batch_tokens(stats)}
        if convex:
            tokens = min(stats.examples, 4096)
            steps = max(400, -(-stats.examples // tokens))
            lr = min(1.0, optimizer.default_lr(0.1))
            values = {"batch_tokens": tokens, "lr": lr, "steps": steps, "validate_every": steps}
        return [*auto_settings, *self.auto_settings(stats.reason, **values)]

    def _rest(self, stats: DataStats, model: Any) -> Iterator[AutoSetting]:
        """The learning rate, and how long to train where nothing is said."""
        if not self.optimizer.stepwise:
            return
        lr, epochs = self.optimizer.default_lr(model.default_lr(stats)), model.default_epochs(stats)
        yield from self.auto_settings(stats.reason, lr=float(f"{lr:.3g}"))
        if epochs is not None and not self.steps:
            yield from self.auto_settings(stats.reason, epochs=epochs)
        elif not (self.budget or self.steps or self.epochs):
            yield from self.auto_settings(stats.reason, epochs=usual_epochs(stats), patience=5)

    def passes(self, stats: DataStats, model: Any) -> float:
        """How often the run will see the data: given, or guessed from the time and the size.

        A token costs about 6 operations per weight; a core does some 5e10 per second.
        """
        speed = 1e13 if torch.cuda.is_available() else 5e10 * torch.get_num_threads()
        batches = self.accumulation_steps * parallel.world_size()
        batch = len(model.sides) * (self.batch_tokens or 0) * batches  # tokens of all sides
        given = [
            (self.epochs, 1.0),
            (self.steps, batch / stats.tokens),
            (self.budget, speed / (3 * model.weights(stats) * stats.tokens)),
        ]
        passes = [float(limit) * factor for limit, factor in given if limit]
        return min(passes, default=usual_epochs(stats))


def usual_epochs(stats: DataStats) -> float:
    """Passes of a run whose length is left open."""
    return max(3.0, min(100.0, round(EPOCH_TOKENS / stats.tokens)))
