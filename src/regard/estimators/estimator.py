"""The base class of the estimators, with the scikit-learn interface."""

import inspect
import json
import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard import metrics
from regard.config.load import Config, load_config
from regard.core.errors import UserError, info
from regard.data.reading.read import Pair
from regard.inference.baseline_evaluation import evaluate_baselines, load_baselines
from regard.inference.confident_labels import pseudo_label
from regard.inference.predictor import Predictor
from regard.optim.training_options import Training
from regard.storage.run_files import read_config
from regard.tasks.task import Prediction, Task
from regard.training.describe import describe
from regard.training.log import Display
from regard.training.session import train_run
from regard.training.start import start_run
from regard.training.tensorboard import with_tensorboard
from regard.training.transfer import read_pretrained

if TYPE_CHECKING:
    from typing_extensions import Self


class NotFitted(UserError, AttributeError):
    """The error for an estimator that is not fitted yet."""


class Estimator:
    """Base class of all estimators.

    budget, steps, epochs: length of training, as a time (`budget="3m"`), in optimizer steps, or
    in epochs. recipe: name of a recipe, or path of a YAML file. settings: changes of the
    configuration by key, such as `{"model.encoder.width": 128}`. out: run folder (default: a
    temporary folder). verbose: show progress.
    """

    task = ""  # `task.kind` in the configuration
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

    def _to_pairs(self, X: Any, y: Any) -> list[Pair]:
        """Convert X and y to training examples."""
        raise NotImplementedError

    def _to_sources(self, X: Any) -> list[Any]:
        """Convert X to a list of sources."""
        if isinstance(X, str):
            raise UserError("X: expected a list of texts, found one text", help="pass [text]")
        return list(X)

    def fit(
        self,
        X: Any,
        y: Any = None,
        dev: Any = None,
        init_from: "str | Path | Estimator | None" = None,
        unlabeled: Any = None,
    ) -> "Self":
        """Train on sources X and targets y, or on pairs X = [(source, target), ...].

        dev: the dev set, as pairs or as a tuple (X, y). Default: hold out some of the examples.
        init_from: a fitted estimator or a run folder whose weights and vocabulary are reused.
        unlabeled: more sources for self-training. A teacher model with the same settings is
        trained first and predicts their labels. Labels with confidence >=
        `task.pseudo_label_threshold` are added to the training set.
        """
        pairs = self._to_pairs(X, y)
        config = self._config()
        held_out = self._dev(dev)
        if held_out is None:
            pairs, held_out = config.task.hold_out(pairs)
        pairs, sampled = config.task.sample(pairs, config.training.seed)
        for note in sampled if self.verbose else ():
            info(note)
        if unlabeled is not None:
            threshold = config.task.get_pseudo_label_threshold()
            teacher = type(self)(**self.get_params() | {"out": None})
            teacher._train(config, pairs, held_out, init_from)
            labeled = pseudo_label(teacher.predictor_, teacher._to_sources(unlabeled), threshold)
            pairs = [*pairs, *(pair for pair, _ in labeled)]
        return self._train(config, pairs, held_out, init_from)

    def _dev(self, dev: Any) -> list[Pair] | None:
        """Convert `dev`, pairs or a tuple (X, y), to examples."""
        if dev is None:
            return None
        both = isinstance(dev, tuple) and len(dev) == 2 and not isinstance(dev[0], str)
        return self._to_pairs(*dev) if both else self._to_pairs(dev, None)

    def _train(
        self,
        config: Config,
        pairs: list[Pair],
        held_out: list[Pair],
        init_from: "str | Path | Estimator | None",
    ) -> "Self":
        """Train a model from start to finish in a new run folder, and keep its predictor."""
        if self.out is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="regard-")
        folder = Path(self.out or self._temporary.name)
        if (folder / "config.yaml").exists():
            raise UserError(f"{folder}: already contains a run", help="choose another `out`")
        display = self._display(config.training)  # raises before anything is written
        start: Any = getattr(init_from, "folder_", init_from)
        pretrained = read_pretrained(Path(start), read_config(Path(start))) if start else None
        run = start_run(folder, config, pairs, held_out, pretrained)
        describe(run, {})
        with closing(display):
            finished = train_run(run, display)
        self._set_predictor(Predictor.of(run.task, run.config, run.model.eval(), folder))
        if not finished:  # interrupted: a loop over many fits, such as a grid search, must stop
            raise KeyboardInterrupt
        return self

    def predict_detailed(
        self, X: Any, nbest: int = 1, batch_size: int = 64, **search: Any
    ) -> list[Prediction]:
        """Return the predictions with scores, probabilities, n-best lists and unknown tokens.

        search: search options by name.
        """
        predictor = self.predictor_
        return predictor.predict(
            self._to_sources(X), predictor.search_options(**search), nbest, rows=batch_size
        )

    def evaluate(
        self, X: Any, y: Any = None, batch_size: int = 64, **search: Any
    ) -> dict[str, float]:
        """Return all metrics by name. search: search options by name."""
        predictor = self.predictor_
        examples = predictor.task.examples(self._to_pairs(X, y))
        return predictor.evaluate(examples, predictor.search_options(**search), batch_size).scores

    def evaluate_baselines(self, X: Any, y: Any = None) -> dict[str, dict[str, float]]:
        """Return all metrics of each trivial baseline by its name, the best baseline first."""
        examples = self.task_.examples(self._to_pairs(X, y))
        found = evaluate_baselines(self.predictor_, load_baselines(self.predictor_), examples)
        return {one.name: one.scores for one in found.scores}

    def score(self, X: Any, y: Any = None) -> float:
        """Return the metric that selects the best checkpoint, negated if lower is better."""
        value = self.evaluate(X, y)[self.task_.metric]
        return value if metrics.HIGHER_IS_BETTER[self.task_.metric] else -value

    def save(self, folder: str | Path) -> None:
        """Copy the run folder to `folder`, which `regard.load` reads."""
        source = self.predictor_.folder
        if Path(folder).exists() and any(Path(folder).iterdir()):
            raise UserError(f"{folder}: the folder is not empty", help="choose another one")
        shutil.copytree(source, folder, dirs_exist_ok=True)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor arguments (scikit-learn interface)."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> "Self":
        """Set constructor arguments (scikit-learn interface)."""
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

    def _display(self, training: Training) -> Display:
        from regard.training.display import choose_display

        return with_tensorboard(training, choose_display() if self.verbose else Display())

    def _set_predictor(self, predictor: Predictor) -> "Self":
        """Use the trained model of a predictor; return the estimator."""
        self.predictor_ = predictor
        return self

    def __getattr__(self, name: str) -> Any:
        """Raise NotFitted for `predictor_`, which `fit` sets; AttributeError for other names."""
        kind = type(self).__name__
        if name == "predictor_":
            raise NotFitted(f"this {kind} is not fitted: call fit, or use regard.load(folder)")
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")

    @property
    def model_(self) -> Any:
        """The torch module, or the engine if the engine is not torch."""
        return self.predictor_.module or self.predictor_.engine

    @property
    def task_(self) -> Task:
        """The task that was fitted to the data."""
        return self.predictor_.task

    @property
    def config_(self) -> Config:
        """The complete configuration."""
        return self.predictor_.config

    @property
    def folder_(self) -> Path:
        """The run folder."""
        return self.predictor_.folder


def _yaml(value: Any) -> str:
    """Return a value as JSON, a subset of YAML. Numpy numbers become Python numbers."""
    return json.dumps(value, default=lambda number: number.item())
