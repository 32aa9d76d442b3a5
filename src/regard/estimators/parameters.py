"""The constructor arguments of estimators, with the interface of scikit-learn."""

import inspect
import json
from typing import TYPE_CHECKING, Any

from regard.config.load import Config, load_config
from regard.core.errors import UserError

if TYPE_CHECKING:
    from typing_extensions import Self


class Parameters:
    """The constructor arguments of an estimator. The constructor only stores them."""

    task = ""  # `task.kind` in the configuration

    def __init__(
        self,
        budget: str | float | None = None,
        steps: int | None = None,
        epochs: float | None = None,
        seed: int | None = None,
        recipe: str | None = None,
        settings: dict[str, Any] | None = None,
        out: str | None = None,
        verbose: bool = False,
        rate: int | None = None,
    ) -> None:
        """Store the arguments; `fit` checks them.

        budget: length of training as a time, such as `"3m"`. steps: length in optimizer steps.
        epochs: length in epochs. seed: seed of all random numbers. recipe: name of a recipe, or
        path of a YAML file. settings: changes of the configuration by key, such as
        `{"model.encoder.width": 128}`. out: run folder (default: a temporary folder). verbose:
        show progress. rate: sampling rate in Hz of sounds, which X has as arrays of samples
        (default of all methods except `fit`: that of the model).
        """
        self.budget = budget
        self.steps = steps
        self.epochs = epochs
        self.seed = seed
        self.recipe = recipe
        self.settings = settings
        self.out = out
        self.verbose = verbose
        self.rate = rate

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor arguments (scikit-learn interface). deep: has no effect."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> "Self":
        """Set constructor arguments by name (scikit-learn interface). params: their values."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise UserError(
                    f"{type(self).__name__}: unknown parameter {name!r}; available: "
                    f"{', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return the scikit-learn estimator tags."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def __repr__(self) -> str:
        default = {n: p.default for n, p in inspect.signature(type(self)).parameters.items()}
        changed = [f"{n}={v!r}" for n, v in self.get_params().items() if v != default[n]]
        return f"{type(self).__name__}({', '.join(changed)})"

    def _config(self) -> Config:
        """Return the configuration for the constructor arguments."""
        settings = dict(self.settings or {})
        for name in ("budget", "steps", "epochs", "seed"):
            if getattr(self, name) is not None:
                settings[f"training.{name}"] = getattr(self, name)
        overrides = [f"{key}={_yaml(value)}" for key, value in settings.items()]
        return load_config(self.recipe, [f"task.kind={self.task}", *overrides])


def _yaml(value: Any) -> str:
    """Return a value as JSON, a subset of YAML. Numpy numbers become Python numbers."""
    return json.dumps(value, default=lambda number: number.item())
