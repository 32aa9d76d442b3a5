"""Regression: one or more numbers per text or vector."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import nn

from regard.baselines import BaselineFit, MeanTarget
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.field_types import Deviations, Numbers
from regard.core.files import corrupted, read_fields, write_json
from regard.core.options import AutoSetting
from regard.data.checks.check_labels import NumberCheck, check_numbers
from regard.data.corpus.corpora import Corpus, LabelCorpus
from regard.data.reading.columns import number
from regard.data.reading.graphs import Reading
from regard.data.reading.labeled import read_numbers
from regard.data.reading.read import Example, Pair, Pairs
from regard.data.reading.vectors import looks_like_vectors, read_vectors
from regard.data.sources.graphs import open_graphs, read_graph_pairs
from regard.data.sources.media import Targets, as_numbers, read_media, with_hint
from regard.data.sources.open import DataSpec, TrainDev
from regard.inputs import Inputs, fit_input
from regard.inputs.input import Input
from regard.inputs.text import Text
from regard.inputs.vectors import standard
from regard.metrics.numbers import WeightedScores, measure_numbers, number_table
from regard.models.encoder_model import EncoderModel, LabelHead, PooledOptions
from regard.objectives import Objective
from regard.search.search import SearchResult
from regard.tasks.inspection.forced_pass import InspectionRequest
from regard.tasks.inspection.pooled_pass import RegressorPass, regressor_pass
from regard.tasks.labeled_data import check_not_streamed, graphs_of, source_stats, text_or_vector
from regard.tasks.task import Evaluation, Prediction, Task
from regard.tasks.task_options import TaskOptions
from regard.tasks.values import InputItem, predicted_and_expected

Metric = Literal["r2", "rmse", "mae"]
MAX_SCATTER = 500  # maximum points of the scatter plot


class RegressOptions(TaskOptions):
    """Options of regression: one or more numbers per text or vector."""

    kind: Literal["regress"] = "regress"
    source: Inputs = Field(Text(), description="input type and tokenizer")
    metric: Metric = Field("r2", description="metric that selects the best checkpoint")

    def open(self, spec: DataSpec, dev: DataSpec) -> TrainDev:
        """Read the data, which may be graphs; return the training set and the dev set."""
        if spec.is_graph:
            return open_graphs(spec, dev, Reading.of(self.source), to_numbers)
        return super().open(spec, dev)

    def read(self, spec: DataSpec) -> Pairs:
        """Return the texts, vectors or images of a file with their numbers."""
        columns = spec.source_column, spec.target_column
        if spec.is_graph:
            return read_graph_pairs(spec, Reading.of(self.source), to_numbers)
        targets = Targets("numbers", self._read_texts, as_numbers)
        if (media := read_media(spec, targets, self.source.prepare)) is not None:
            return media
        if looks_like_vectors(spec.file(), *columns, spec.other_columns):
            return read_vectors(spec.file(), *columns, others=spec.other_columns)[0]
        return with_hint(spec, check_not_streamed(spec, self._read_texts(spec)))

    def _read_texts(self, spec: DataSpec) -> Pairs:
        """Return the texts of a table with their numbers."""
        return read_numbers(spec.file(), spec.source_column, spec.target_column)

    def fit(
        self, pairs: Sequence[Pair], model: Any = None, like: Any = None
    ) -> tuple["RegressTask", "RegressOptions", list[AutoSetting]]:
        """Fit the task to examples. Return the task, complete options and automatic settings."""
        tree, auto_settings = self.model_dump(), list[AutoSetting]()
        known = None if like is None else like.source
        sources = [pair.source for pair in pairs]
        source, options = fit_input(self.source, sources, "task.source", auto_settings, known)
        tree["source"] = options.model_dump()
        numbers = np.array([pair.target for pair in pairs], np.float64)  # (N, K)
        if (numbers == numbers[0]).all():
            raise UserError(
                f"expected different targets, found {numbers[0].tolist()} in every example"
            )
        mean, deviation = standard(numbers)
        if (
            like is not None and like.kind == self.kind and len(like.mean) == len(mean)
        ):  # the output layer of that model is reused
            mean, deviation = np.array(like.mean), np.array(like.deviation)
        task = RegressTask(source, mean.tolist(), deviation.tolist(), self.metric)
        return task, RegressOptions.model_validate(tree), auto_settings

    def load(self, folder: Path) -> "RegressTask":
        """Return the task that `RegressTask.save` wrote to a run folder."""
        path = folder / "vocabulary"
        mean, deviation, metric = read_fields(
            path / "task.json", mean=Numbers, deviation=Deviations, metric=Metric
        )
        if len(mean) != len(deviation):
            raise corrupted(path / "task.json", "mean and deviation have different lengths")
        return RegressTask(self.source.load(path), mean, deviation, metric)


def to_numbers(cell: str) -> tuple[float, ...]:
    """Return the target of a graph; raise ValueError if it is not a number."""
    value = number(cell)
    if value is None:
        raise ValueError(f"expected a finite number, found {cell!r}")
    return (value,)


class RegressTask(Task):
    """The regression task. mean, deviation: mean and standard deviation of each target."""

    kind = "regress"

    def __init__(
        self, source: Input, mean: list[float], deviation: list[float], metric: str
    ) -> None:
        self.source = source
        self.mean = mean
        self.deviation = deviation
        self.metric = metric

    def build(self, options: PooledOptions) -> EncoderModel:
        """Return an encoder model with one output per target number."""
        return options.build(self.source.shape, len(self.mean))

    def corpus(self, pairs: Sequence[Pair]) -> Corpus:
        """Return the examples as tensors, with standardized targets."""
        numbers = np.array([pair.target for pair in pairs], np.float64)
        scaled = ((numbers - self.mean) / self.deviation).astype(np.float32)
        return LabelCorpus(self.source.encode([pair.source for pair in pairs]), scaled)

    def parse(self, text: str) -> Any:
        """Parse an input line into a source: a text, or the numbers of a vector."""
        return self.source.parse(text)

    def stats(self, corpus: Corpus) -> DataStats:
        """Return the data statistics from which default settings are chosen."""
        return source_stats(self.source, corpus, len(self.mean))

    def graph_items(self, spec: DataSpec) -> tuple[Iterator[InputItem], list[str]]:
        """Return one item per graph of a table of nodes, and notes."""
        return graphs_of(self.source, spec)

    to_source = staticmethod(text_or_vector)

    def forced_pass(self, request: InspectionRequest) -> RegressorPass:
        """Return the forced pass over a source, with its predicted numbers as the output."""
        return regressor_pass(request)

    def make_prediction(
        self, source: Any, row: np.ndarray | None, found: SearchResult, search: Any, nbest: int
    ) -> Prediction:
        """Return the predicted numbers in the unit of the data. found: standardized outputs."""
        numbers = found.astype(np.float64) * self.deviation + self.mean
        return Prediction(
            "\t".join(f"{number:.6g}" for number in numbers),
            None,
            unknown_tokens=self.source.unknown(source),
            folded=self.source.folded(source),
            value=tuple(numbers.tolist()),
            is_scalar=len(numbers) == 1,
        )

    def solve(self, model: nn.Module, corpus: Corpus, objective: Objective) -> None:
        """Solve linear regression by least squares (`numpy.linalg.lstsq`)."""
        linear = getattr(getattr(model, "encoder", None), "linear", False)
        if not linear or self.source.sequential or not objective.least_squares:
            return super().solve(model, corpus, objective)
        assert isinstance(corpus, LabelCorpus)
        vectors = corpus.source.all().data.flatten(1).double().numpy()
        ones = np.ones((len(corpus), 1))
        inputs = np.hstack([vectors, ones])  # (N, F + 1)
        weights = np.linalg.lstsq(inputs, corpus.labels.astype(np.float64), rcond=None)[0]
        assert isinstance(model.head, LabelHead)
        with torch.no_grad():
            model.head.linear.weight.copy_(torch.from_numpy(weights[:-1].T))
            model.head.linear.bias.copy_(torch.from_numpy(weights[-1]))
        return None

    def compute_metrics(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> WeightedScores:
        """Return r2, and rmse and mae in the unit of the data."""
        return measure_numbers(*predicted_and_expected(predictions, examples))

    def baseline_fits(self) -> list[BaselineFit]:
        """Return the mean of the training targets."""
        return [BaselineFit(MeanTarget.name, MeanTarget.fit)]

    def details(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, Any]:
        """Return metrics per target number, and (expected, predicted) pairs for a scatter plot."""
        y_pred, y_true = predicted_and_expected(predictions, examples)
        names = [str(number) for number in range(1, len(self.mean) + 1)]
        pairs = [[b[0], a[0]] for a, b in zip(y_pred, y_true, strict=True)]
        return {"numbers": number_table(y_pred, y_true, names), "scatter": pairs[:MAX_SCATTER]}

    def samples(self, evaluation: Evaluation, examples: Sequence[Example]) -> list[dict[str, Any]]:
        """Return a fixed random sample of examples with expected and predicted numbers."""
        return [{"kind": "number", **row} for row in super().samples(evaluation, examples)]

    def check(self, train: Sequence[Pair], dev: Sequence[Pair]) -> NumberCheck:
        """Return statistics of the data, and warnings about the data."""
        sources = [[pair.source for pair in pairs] for pairs in (train, dev)]
        return check_numbers(train, dev, self.source.plural, self.source.media_stats(*sources))

    def save(self, folder: Path) -> None:
        """Write the input, mean and deviation to `vocabulary/` in the run folder."""
        path = folder / "vocabulary"
        path.mkdir(parents=True, exist_ok=True)
        self.source.save(path)
        names = ("mean", "deviation", "metric")
        write_json(path / "task.json", {name: getattr(self, name) for name in names})
