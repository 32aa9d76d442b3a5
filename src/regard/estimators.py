"""Estimators in the manner of scikit-learn: fit, predict, evaluate, save, load."""

import inspect
import json
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from torch import nn

from regard import metrics
from regard.config import Config, flatten, load_config
from regard.data.read import Pair, group, split_dev
from regard.errors import UserError
from regard.evaluation import evaluate
from regard.files import read_json
from regard.tasks.base import Prediction, Task
from regard.training.checkpoint import load_weights
from regard.training.log import Display
from regard.training.memory import keep_freed_memory
from regard.training.run import FORMAT, best_device, describe, read_config, start_run
from regard.training.session import train_run

Texts = Sequence[str]


class Transducer:
    """A sequence in, a sequence of its own length out.

    budget, steps, epochs: how long to train (`budget="3m"`); recipe: a name or a file;
    settings: `{"model.encoder.width": 128}`, the keys of the configuration; out: the run folder
    (by default a temporary one); verbose: show progress.
    """

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

    def fit(
        self,
        X: Sequence[Any],
        y: Sequence[Any] | None = None,
        dev: Sequence[tuple[str, str]] | None = None,
    ) -> "Transducer":
        """Trains on pairs `[(source, target), ...]`, or on sources X and targets y.

        A target may be a list of alternatives. Without `dev` a part of the data is held back.
        """
        pairs = _pairs(X, y)
        held = _pairs(dev, None) if dev is not None else None
        if held is None:
            pairs, held = split_dev(pairs)
        if self.out is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="regard-")
        folder = Path(self.out or self._temporary.name)
        if (folder / "config.yaml").exists():
            raise UserError(f"{folder}: holds a run already; choose another `out`")
        run = start_run(folder, self._config(), pairs, held)
        describe(run, {})
        with closing(self._display()) as display:
            whole = train_run(run, display)
        self._take(folder, run.config, run.task, run.model)
        if not whole:  # the model can be used, but a search over many fits must stop here
            raise KeyboardInterrupt
        return self

    def predict(
        self, X: Texts, beam: int | None = None, nbest: int = 1, batch_size: int = 64
    ) -> list[Any]:
        """The answer to each source; with nbest > 1 a list of answers, best first."""
        found = self.predictions(X, beam, nbest, batch_size)
        if nbest == 1:
            return [prediction.text for prediction in found]
        return [[other.text for other in prediction.alternatives] for prediction in found]

    def predictions(
        self, X: Texts, beam: int | None = None, nbest: int = 1, batch_size: int = 64
    ) -> list[Prediction]:
        """The answers with scores, symbols, alternatives and unknown symbols."""
        self._check_fitted()
        if isinstance(X, str):
            raise UserError("predict takes a list of texts; write predict([text]) for one")
        search = self.search(beam)
        return self.task_.predict(self.model_, list(X), search, nbest, batch_size)

    def evaluate(
        self,
        X: Sequence[Any],
        y: Sequence[Any] | None = None,
        beam: int | None = None,
        batch_size: int = 64,
    ) -> dict[str, float]:
        """exact ser cer wer bleu chrf bleu_d2l perplexity, on pairs or on sources and targets."""
        self._check_fitted()
        examples = group(_pairs(X, y))
        result = evaluate(
            self.task_,
            self.model_,
            examples,
            self.config_.objective,
            self.search(beam),
            batch_size,
        )
        return result.scores

    def score(self, X: Sequence[Any], y: Sequence[Any] | None = None) -> float:
        """The task's own measure; larger is better."""
        value = self.evaluate(X, y)[self.task_.metric]
        return value if metrics.HIGHER_IS_BETTER[self.task_.metric] else -value

    def save(self, folder: str | Path) -> None:
        """Copies the run folder: all that `load` needs."""
        self._check_fitted()
        if Path(folder).exists() and any(Path(folder).iterdir()):
            raise UserError(f"{folder}: exists and is not empty; choose another folder")
        shutil.copytree(self.folder_, folder, dirs_exist_ok=True)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> "Transducer":
        """Changes constructor arguments."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise UserError(f"Transducer has no parameter {name!r}; it has {', '.join(known)}")
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
        return load_config(self.recipe, [f"{k}={_yaml(v)}" for k, v in settings.items()])

    def search(self, beam: int | None = None) -> Any:
        """The search of this model, with another beam where one is given."""
        search = self.config_.search
        if beam is None:
            return search
        if beam < 1:
            raise UserError(f"beam: a number from 1 expected, {beam} given")
        return search.model_copy(update={"beam": beam})

    def _display(self) -> Display:
        if not self.verbose:
            return Display()
        from regard.display import choose_display

        return choose_display()

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise UserError("this Transducer is not fitted: call fit, or regard.load(folder)")

    def _take(self, folder: Path, config: Config, task: Task, model: nn.Module) -> "Transducer":
        self.folder_, self.config_, self.task_, self.model_ = folder, config, task, model.eval()
        return self


def load(folder: str | Path) -> Transducer:
    """The fitted estimator of a run folder."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such model folder")
    check_version(folder)
    config = read_config(folder)
    if unset := [
        key for key, v in flatten(config.model.model_dump()).items() if v in (None, "auto")
    ]:
        raise UserError(f"{folder}/config.yaml: damaged or cut short: model.{unset[0]} is not set")
    keep_freed_memory()
    task = config.task.load(folder)
    model = task.build(config.model).to(best_device())
    load_weights(model, folder / "model.safetensors")
    return Transducer()._take(folder, config, task, model)


def check_version(folder: Path) -> None:
    """Refuses a run folder of a newer regard, whose settings this one cannot know."""
    path = folder / "run.json"
    facts = read_json(path) if path.exists() else {}
    if facts.get("format", 0) > FORMAT:
        raise UserError(
            f"{folder}: made by regard {facts.get('version')}, which is newer than this one; "
            "update with pip install -U regard"
        )


def _yaml(value: Any) -> str:
    """A value as a setting is written: JSON, which is YAML; numpy's numbers as plain ones."""
    return json.dumps(value, default=lambda number: number.item())


def _pairs(X: Iterable[Any], y: Iterable[Any] | None) -> list[Pair]:
    """Pairs from pairs, or from sources and targets; a target may be a list of alternatives."""
    rows = list(X) if y is None else list(zip(X, y, strict=True))
    pairs = []
    for number, row in enumerate(rows, 1):
        if isinstance(row, str) or len(row) != 2:
            raise UserError(f"example {number}: a pair (source, target) expected, {row!r} found")
        source, targets = row
        if not isinstance(targets, str) and len(targets) == 0:
            raise UserError(f"example {number}: a target expected, an empty list found")
        for target in [targets] if isinstance(targets, str) else targets:
            pairs.append(Pair(str(source), str(target), number))
    return pairs
