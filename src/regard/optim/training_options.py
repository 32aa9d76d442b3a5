"""The settings of training."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from regard.core.options import Options
from regard.core.parallel import Kind
from regard.optim.average import Averaging, NoAverage
from regard.optim.init import Default, Init
from regard.optim.optimizers import AdamW, AutoOptimizer, Optimizer
from regard.optim.precision import Precision
from regard.optim.schedules import Cosine, Schedule

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
    tokens: int | None = Field(
        None, gt=0, description="padded symbols of the longer side in a batch, at most"
    )
    accumulate: int = Field(1, gt=0, description="batches in an update, in each process")
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
    clip: float = Field(1.0, ge=0, description="largest norm of the gradient; 0: no limit")
    clip_value: float = Field(
        0.0, ge=0, description="largest number in the gradient, before `clip`; 0: no limit"
    )
    validate_every: int | None = Field(
        None, gt=0, description="steps between validations; None: ten a run"
    )
    validate_on: int = Field(500, gt=0, description="dev examples used while training, at most")
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
    loaded_lr: float = Field(
        0.3, gt=0, le=1, description="with --from: share of the rate for weights that were loaded"
    )

    @model_validator(mode="before")
    @classmethod
    def _adam_by_its_settings(cls, tree: Any) -> Any:
        """An optimiser left open, but with settings that AdamW has, is adamw."""
        given = tree.get("optimizer") if isinstance(tree, dict) else None
        if isinstance(given, dict) and given.get("kind", "auto") == "auto":
            named = set(given) - {"kind"}
            if named and named <= set(AdamW.model_fields):
                return tree | {"optimizer": given | {"kind": "adamw"}}
        return tree
