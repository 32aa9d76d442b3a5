"""Estimators in the manner of scikit-learn: fit, predict, evaluate, save, load."""

import inspect
import json
import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard import metrics
from regard.config.load import Config, load_config
from regard.core.errors import UserError
from regard.data.reading.read import Pair
from regard.inference.confident_labels import label
from regard.inference.predictor import Predictor
from regard.optim.training_options import Training
from regard.storage.run_files import read_config
from regard.tasks.task import Prediction, Task
from regard.training.describe import describe
from regard.training.log import Display
from regard.training.session import train_run
from regard.training.start import start_run
from regard.training.tensorboard import followed
from regard.training.transfer import read_origin

if TYPE_CHECKING:
    from typing_extensions import Self


class NotFitted(UserError, AttributeError):
    """What only a trained estimator can do was asked of another one."""


class Estimator:
    """What all estimators have in common.

    budget, steps, epochs: how long to train (`budget="3m"`); recipe: a name or a file;
    settings: `{"model.encoder.width": 128}`, the keys of the configuration; out: the run folder
    (by default a temporary one); verbose: show progress.
    """

    task = ""  # the kind of task
    predictor_: Predictor  # the trained model

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
    ) -> None:
        self.budget = budget
        self.steps = steps
        self.epochs = epochs
        self.seed = seed
        self.recipe = recipe
        self.settings = settings
        self.out = out
        self.verbose = verbose

    def pairs(self, X: Any, y: Any) -> list[Pair]:
        """Examples from what the user gives."""
        raise NotImplementedError

    def sources(self, X: Any) -> list[Any]:
        """Sources from what the user gives to `predict`."""
        if isinstance(X, str):
            raise UserError("predict takes a list of texts; write predict([text]) for one")
        return list(X)

    def fit(
        self,
        X: Any,
        y: Any = None,
        dev: Any = None,
        start: "str | Path | Estimator | None" = None,
        unlabeled: Any = None,
    ) -> "Self":
        """Trains on X and y, or on pairs.

        Without `dev` a part of the data is held back. start: a model or its folder to start from.
        unlabeled: sources without answers; a first model, trained alike, labels them, and those
        it is sure of (`task.confidence`) join the training part.
        """
        pairs = self.pairs(X, y)
        config = self._config()
        held = self._dev(dev)
        if held is None:
            pairs, held = config.task.hold_back(pairs)
        if unlabeled is not None:
            least = config.task.surely()
            first = type(self)(**self.get_params() | {"out": None})
            first._train(config, pairs, held, start)
            surely = label(first.predictor_, first.sources(unlabeled), least)
            pairs = [*pairs, *(pair for pair, _ in surely)]
        return self._train(config, pairs, held, start)

    def _dev(self, dev: Any) -> list[Pair] | None:
        """Dev examples, given as pairs or as (X, y)."""
        if dev is None:
            return None
        both = isinstance(dev, tuple) and len(dev) == 2 and not isinstance(dev[0], str)
        return self.pairs(*dev) if both else self.pairs(dev, None)

    def _train(
        self,
        config: Config,
        pairs: list[Pair],
        held: list[Pair],
        start: "str | Path | Estimator | None",
    ) -> "Self":
        """A run from its beginning to its end."""
        if self.out is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="regard-")
        folder = Path(self.out or self._temporary.name)
        if (folder / "config.yaml").exists():
            raise UserError(f"{folder}: holds a run already; choose another `out`")
        display = self._display(config.training)  # refuses before anything is written
        begin: Any = getattr(start, "folder_", start)
        origin = read_origin(Path(begin), read_config(Path(begin))) if begin else None
        run = start_run(folder, config, pairs, held, origin)
        describe(run, {})
        with closing(display):
            whole = train_run(run, display)
        self._take(Predictor.of(run.task, run.config, run.model.eval(), folder))
        if not whole:  # the model can be used, but a search over many fits must stop here
            raise KeyboardInterrupt
        return self

    def predictions(
        self, X: Any, nbest: int = 1, batch_size: int = 64, **search: Any
    ) -> list[Prediction]:
        """The answers with scores, probabilities, alternatives and unknown tokens."""
        predictor = self.predictor_
        return predictor.predict(
            self.sources(X), predictor.search(**search), nbest, rows=batch_size
        )

    def evaluate(
        self, X: Any, y: Any = None, batch_size: int = 64, **search: Any
    ) -> dict[str, float]:
        """All measures by name."""
        predictor = self.predictor_
        examples = predictor.task.examples(self.pairs(X, y))
        return predictor.evaluate(examples, predictor.search(**search), batch_size).scores

    def score(self, X: Any, y: Any = None) -> float:
        """The task's own measure; larger is better."""
        value = self.evaluate(X, y)[self.task_.metric]
        return value if metrics.HIGHER_IS_BETTER[self.task_.metric] else -value

    def save(self, folder: str | Path) -> None:
        """Copies the run folder: all that `load` needs."""
        source = self.predictor_.folder
        if Path(folder).exists() and any(Path(folder).iterdir()):
            raise UserError(f"{folder}: exists and is not empty; choose another folder")
        shutil.copytree(source, folder, dirs_exist_ok=True)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> "Self":
        """Changes constructor arguments."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise UserError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn wants to know; only called by it."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def __repr__(self) -> str:
        default = {n: p.default for n, p in inspect.signature(type(self)).parameters.items()}
        given = [f"{n}={v!r}" for n, v in self.get_params().items() if v != default[n]]
        return f"{type(self).__name__}({', '.join(given)})"

    def _config(self) -> Config:
        """The configuration these arguments mean."""
        settings = dict(self.settings or {})
        for name in ("budget", "steps", "epochs", "seed"):
            if getattr(self, name) is not None:
                settings[f"training.{name}"] = getattr(self, name)
        given = [f"{key}={_yaml(value)}" for key, value in settings.items()]
        return load_config(self.recipe, [f"task.kind={self.task}", *given])

    def _display(self, training: Training) -> Display:
        from regard.training.display import choose_display

        return followed(training, choose_display() if self.verbose else Display())

    def _take(self, predictor: Predictor) -> "Self":
        """Takes over a trained model."""
        self.predictor_ = predictor
        return self

    def __getattr__(self, name: str) -> Any:
        """Says what is missing before `fit`."""
        kind = type(self).__name__
        if name == "predictor_":
            raise NotFitted(f"this {kind} is not fitted: call fit, or regard.load(folder)")
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")

    @property
    def model_(self) -> Any:
        """The model as torch trains it, or else the engine that runs it."""
        return self.predictor_.module or self.predictor_.engine

    @property
    def task_(self) -> Task:
        """The task that was fitted to the data."""
        return self.predictor_.task

    @property
    def config_(self) -> Config:
        """All settings, filled."""
        return self.predictor_.config

    @property
    def folder_(self) -> Path:
        """The run folder."""
        return self.predictor_.folder


def _yaml(value: Any) -> str:
    """A value as a setting is written: JSON, which is YAML; numpy's numbers as plain ones."""
    return json.dumps(value, default=lambda number: number.item())
