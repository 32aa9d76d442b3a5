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
from regard.optim.precision import Precision, has_fused_recurrence
from regard.optim.schedules import Cosine, Schedule

DEFAULT_TOKENS = 40_000_000  # tokens seen by a run without a length limit
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: object) -> object:
    """Convert a duration such as '90s', '10m', '2h', '1h30m' or '90' to seconds."""
    if not isinstance(text, str):
        return text
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip().lower())
    is_complete = "".join(a + b for a, b in parts) == re.sub(r"\s+", "", text.lower())
    if not parts or not is_complete or (len(parts) > 1 and not all(unit for _, unit in parts)):
        raise ValueError("expected a duration such as 90s, 10m, 2h or 1h30m")
    return sum(float(number) * UNITS[unit] for number, unit in parts)


class Training(Options):
    """The settings of training. If None, some are chosen automatically from the data."""

    budget: Annotated[float | None, BeforeValidator(seconds)] = Field(
        None, gt=0, description="training time, e.g. 90s, 10m, 2h; the schedule follows the clock"
    )
    steps: int | None = Field(None, gt=0, description="maximum number of updates")
    epochs: float | None = Field(None, gt=0, description="maximum number of epochs")
    seed: int = Field(
        1,
        ge=0,
        description="random seed for initialization, data order, dropout and task.examples",
    )
    batch_tokens: int | None = Field(
        None, gt=0, description="maximum tokens per batch: padded size of the longer side"
    )
    accumulation_steps: int = Field(
        1, gt=0, description="batches per update in each process (gradient accumulation)"
    )
    init: Init = Default()
    optimizer: Optimizer = AutoOptimizer()
    lr: float | None = Field(None, gt=0, description="peak learning rate")
    schedule: Schedule = Cosine()
    average: Averaging = NoAverage()
    precision: Precision | None = Field(
        None,
        description="precision of matrix products; weights stay float32. None: float32, or, with a "
        "budget, bfloat16 on a CPU where it is faster",
    )
    parallel: Kind = Field(
        "ddp", description="distributed training: ddp (replicated weights) or fsdp (sharded)"
    )
    clip_norm: float = Field(1.0, ge=0, description="maximum gradient norm; 0 disables clipping")
    clip_value: float = Field(
        0.0, ge=0, description="maximum absolute gradient value, applied first; 0 disables it"
    )
    validate_every: int | None = Field(
        None, gt=0, description="steps between validations; None: ten per run"
    )
    validation_examples: int = Field(
        500, gt=0, description="maximum dev examples for validation during training"
    )
    checkpoint_every: int | None = Field(
        None, gt=0, description="steps between checkpoints; None: at each validation"
    )
    patience: int | None = Field(
        None, gt=0, description="stop after this many validations without a better score"
    )
    tensorboard: bool = Field(False, description="write TensorBoard event files to RUN/tensorboard")
    freeze: list[str] = Field(
        [], description="freeze parameters whose names start with these prefixes"
    )
    pretrained_lr_factor: float = Field(
        0.3,
        gt=0,
        le=1,
        description="learning-rate factor for pretrained weights",
    )

    @model_validator(mode="before")
    @classmethod
    def _infer_adamw(cls, tree: Any) -> Any:
        """Use adamw if only settings of AdamW are given without a kind."""
        section = tree.get("optimizer") if isinstance(tree, dict) else None
        if isinstance(section, dict) and section.get("kind", "auto") == "auto":
            names = set(section) - {"kind"}
            if names and names <= set(AdamW.model_fields):
                return tree | {"optimizer": section | {"kind": "adamw"}}
        return tree

    def propose(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Yield automatic settings once the model sizes are known: `basics`, then the rest."""
        if config.model.is_sized:
            yield from self.basics(stats, config) or self._rest(stats, config)

    def basics(self, stats: DataStats, config: Any) -> list[AutoSetting]:
        """Return the optimizer and the batch size; for convex models also lr and steps."""
        optimizer: Descent = self.optimizer
        auto_settings, convex = list[AutoSetting](), config.model.is_convex(stats)
        if optimizer.is_auto:
            optimizer, reason = Adam() if convex else AdamW(), stats.reason
            if config.model.closed_form(stats, config.objective):
                optimizer, reason = ClosedForm(), "this model has a closed-form solution"
            elif convex:
                reason = "linear model: no weight decay"
            if own := config.model.own_default("default_optimizer"):
                reason = "default of this kind of encoder"
                settings = {f"optimizer.{name}": value for name, value in own.items()}
                return [AutoSetting(name, value, reason) for name, value in settings.items()]
            auto_settings.append(AutoSetting("optimizer.kind", optimizer.kind, reason))
        if self.precision is None:
            auto_settings.append(self._choose_precision(stats, config.model))
        if not optimizer.stepwise:
            return auto_settings
        values: dict[str, Any] = {"batch_tokens": config.model.default_batch_tokens(stats)}
        if convex:
            tokens = min(stats.examples, 4096)
            steps = max(400, -(-stats.examples // tokens))
            lr = min(1.0, optimizer.default_lr(0.1))
            values = {"batch_tokens": tokens, "lr": lr, "steps": steps, "validate_every": steps}
        return [*auto_settings, *self.auto_settings(stats.reason, **values)]

    def _choose_precision(self, stats: DataStats, model: Any) -> AutoSetting:
        """Return bfloat16 if it is faster and the model gains from it, otherwise float32.

        Only with a budget: a number of steps gives the same result on every machine.
        """
        if not (model.trains_in_bfloat16(stats) and has_fused_recurrence(torch.bfloat16)):
            return AutoSetting("precision", "float32", stats.reason)
        gain = stats.machine.half_gain
        reason = f"matrix products are {gain:.1f} times as fast as in float32 on this machine"
        return AutoSetting("precision", "bfloat16", reason)

    def _rest(self, stats: DataStats, config: Any) -> Iterator[AutoSetting]:
        """Yield the learning rate and, for a run without a limit, the number of epochs."""
        if not self.optimizer.stepwise:
            return
        model, factor = config.model, config.objective.lr_factor
        lr, epochs = self.optimizer.default_lr(model.default_lr(stats)), model.default_epochs(stats)
        if epochs is not None:
            if config.objective.epoch_factor is None:
                return
            epochs *= config.objective.epoch_factor
        reason = stats.reason
        if factor != 1:
            reason = f"{factor:g} of the usual rate: fine-tuning with {config.objective.kind}"
        yield from self.auto_settings(reason, lr=float(f"{factor * lr:.3g}"))
        if epochs is not None and not self.steps:
            yield from self.auto_settings(stats.reason, epochs=epochs)
        elif not (self.budget or self.steps or self.epochs):
            yield from self.auto_settings(stats.reason, epochs=default_epochs(stats), patience=5)

    def expected_epochs(self, stats: DataStats, model: Any) -> float:
        """Return the expected number of epochs, from the limits and the model size."""
        per_epoch = self._updates_per_epoch(stats, model)
        limits = [
            (self.epochs, 1.0),
            (self.steps, 1 / per_epoch),
            (self.budget, 1 / (per_epoch * self.update_seconds(stats, model))),
        ]
        epochs = [float(limit) * factor for limit, factor in limits if limit]
        return min(epochs, default=default_epochs(stats))

    def expected_updates(self, stats: DataStats, model: Any) -> float:
        """Return the expected number of updates of the run."""
        return self.expected_epochs(stats, model) * self._updates_per_epoch(stats, model)

    def _updates_per_epoch(self, stats: DataStats, model: Any) -> float:
        """Return the approximate number of updates per epoch."""
        batches = self.accumulation_steps * parallel.world_size()
        batch = len(model.sides) * (self.batch_tokens or stats.tokens) * batches  # of all sides
        return max(1.0, stats.tokens / max(1, batch))

    def update_seconds(self, stats: DataStats, model: Any) -> float:
        """Return the approximate duration of an update."""
        products = model.products(stats) / self._updates_per_epoch(stats, model)
        return stats.machine.seconds(products, self.precision == "bfloat16")


def default_epochs(stats: DataStats) -> float:
    """Return the number of epochs of a run without a limit."""
    return max(3.0, min(100.0, round(DEFAULT_TOKENS / stats.tokens)))
