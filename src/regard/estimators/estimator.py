"""The base class of the estimators, with the scikit-learn interface."""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard import metrics
from regard.config.load import Config
from regard.core.argument_names import names_arguments
from regard.core.errors import UserError, info
from regard.data.reading.read import Example, Pair
from regard.estimators.media_rows import check_array, media_rows
from regard.estimators.parameters import Parameters
from regard.estimators.rows import to_rows
from regard.estimators.sklearn_classes import not_fitted
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


class Estimator(Parameters):
    """Base class of all estimators: fit, predict, evaluate, save."""

    predictor_: Predictor  # the trained model
    predict: Callable[..., Any]  # every estimator defines it

    def _to_pairs(self, X: Any, y: Any) -> list[Pair]:
        """Convert X and y to training examples."""
        raise NotImplementedError

    def _to_sources(self, X: Any) -> list[Any]:
        """Convert X to a list of sources."""
        if predictor := getattr(self, "predictor_", None):
            check_array(X, predictor.task.source)
        return to_rows(X)

    def _media(self, rows: list[Any]) -> list[Any] | None:
        """Return rows as sources in files, such as images; None if they are something else."""
        notes: list[str] = []
        prepare = self._config().task.source.prepare
        found = media_rows(rows, prepare, notes, self.rate or self._fitted_rate())
        for note in notes if self.verbose else ():
            info(note)
        return found

    def _fitted_rate(self) -> int | None:
        """Return the sampling rate of the fitted model, if it reads sounds."""
        predictor = getattr(self, "predictor_", None)
        return (predictor.task.source.shape.rate or None) if predictor else None

    def _check_sources(self, sources: Sequence[Any]) -> None:
        """Raise UserError if the fitted model cannot read these sources."""

    def _hold_out(self, config: Config, pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
        """Split the examples into a training set and a dev set."""
        return config.task.hold_out(pairs)

    @names_arguments
    def fit(
        self,
        X: Any,
        y: Any = None,
        dev: Any = None,
        init_from: "str | Path | Estimator | None" = None,
        unlabeled: Any = None,
    ) -> "Self":
        """Train on sources X and targets y, or on pairs X = [(source, target), ...].

        X, y: lists, NumPy arrays or pandas columns. X may also be a DataFrame with two columns,
        source and target.
        dev: the dev set, as pairs or as a tuple (X, y). Default: hold out some of the examples.
        init_from: a fitted estimator or a run folder whose weights and vocabulary are reused.
        unlabeled: more sources for self-training. A teacher model with the same settings is
        trained first and predicts their labels. Labels with confidence >=
        `task.pseudo_label_threshold` are added to the training set.
        """
        unfitted = type(self)(**self.get_params())  # the rate of an earlier fit does not apply
        pairs, held_out = unfitted._to_pairs(X, y), unfitted._dev(dev)
        config = self._config()
        if held_out is None:
            pairs, held_out = self._hold_out(config, pairs)
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

    @names_arguments
    def predict_detailed(
        self, X: Any, nbest: int = 1, batch_size: int = 64, **search: Any
    ) -> list[Prediction]:
        """Return the predictions with scores, probabilities, n-best lists and unknown tokens.

        X: sources. nbest: hypotheses per source. batch_size: sources per batch; it does not change
        predictions. search: search options by name.
        """
        predictor, sources = self.predictor_, self._to_sources(X)
        self._check_sources(sources)
        return predictor.predict(
            sources, predictor.search_options(**search), nbest, rows=batch_size
        )

    @names_arguments
    def evaluate(
        self, X: Any, y: Any = None, batch_size: int = 64, **search: Any
    ) -> dict[str, float]:
        """Return all metrics by name.

        X, y: sources and references, or pairs X. batch_size: sources per batch. search: search
        options by name.
        """
        options = self.predictor_.search_options(**search)
        return self.predictor_.evaluate(self._examples(X, y), options, batch_size).scores

    def _examples(self, X: Any, y: Any) -> list[Example]:
        """Return the examples that the fitted model is evaluated on."""
        task, pairs = self.task_, self._to_pairs(X, y)
        self._check_sources([pair.source for pair in pairs])
        return task.examples(pairs)

    @names_arguments
    def evaluate_baselines(self, X: Any, y: Any = None) -> dict[str, dict[str, float]]:
        """Return all metrics of each trivial baseline by its name, the best baseline first.

        X, y: sources and references, or pairs X.
        """
        baselines = load_baselines(self.predictor_)
        found = evaluate_baselines(self.predictor_, baselines, self._examples(X, y))
        return {one.name: one.scores for one in found.scores}

    @names_arguments
    def score(self, X: Any, y: Any = None) -> float:
        """Return the metric that selects the best checkpoint, negated if lower is better.

        X, y: sources and references, or pairs X.
        """
        value = self.evaluate(X, y)[self.task_.metric]
        return value if metrics.HIGHER_IS_BETTER[self.task_.metric] else -value

    @names_arguments
    def save(self, folder: str | Path) -> None:
        """Copy the run folder to `folder`, a new or empty folder, which `regard.load` reads."""
        source = self.predictor_.folder
        if Path(folder).exists() and any(Path(folder).iterdir()):
            raise UserError(f"{folder}: the folder is not empty", help="choose another one")
        shutil.copytree(source, folder, dirs_exist_ok=True)

    def _display(self, training: Training) -> Display:
        from regard.training.display import choose_display

        return with_tensorboard(training, choose_display() if self.verbose else Display())

    def _set_predictor(self, predictor: Predictor) -> "Self":
        """Use the trained model of a predictor; return the estimator."""
        self.predictor_ = predictor
        return self

    if not TYPE_CHECKING:  # otherwise a type checker would accept every name

        def __getattr__(self, name: str) -> Any:
            """Raise NotFitted for what `fit` sets, before fit; AttributeError for other names."""
            kind = type(self).__name__
            is_fitted_name = name.endswith("_") and not name.startswith("_")
            if is_fitted_name and "predictor_" not in vars(self):
                raise not_fitted(f"this {kind} is not fitted: call fit, or use regard.load(folder)")
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
