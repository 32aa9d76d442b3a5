"""Options of sequence tagging: one tag per word of a sentence, or one label per node of a graph."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from regard.core.errors import UserError
from regard.core.field_types import Names
from regard.core.files import read_fields
from regard.core.options import AutoSetting
from regard.data.reading.graphs import Reading
from regard.data.reading.read import Pair, Pairs
from regard.data.reading.tagged import read_tagged
from regard.data.sources.graphs import open_graphs, read_graph_pairs
from regard.data.sources.media import check_no_media
from regard.data.sources.open import DataSpec, TrainDev
from regard.inputs import Inputs, fit_input
from regard.inputs.input import Input
from regard.inputs.words import Words
from regard.metrics.spans import is_span_scheme
from regard.tasks.nodes import NodeTask
from regard.tasks.tag_task import TagTask
from regard.tasks.task import Task
from regard.tasks.task_options import TaskOptions

__all__ = ["TagOptions", "TagTask"]

Metric = Literal["accuracy", "f1", "sentence_accuracy", "macro_f1"]
SENTENCE_METRICS = ("accuracy", "f1", "sentence_accuracy")


class TagOptions(TaskOptions):
    """Options of sequence tagging."""

    kind: Literal["tag"] = "tag"
    source: Inputs = Field(Words(), description="input type and tokenizer")
    pseudo_label_threshold: float = Field(
        0.9, gt=0, le=1, description="minimum confidence of a pseudo-label (--unlabeled)"
    )
    metric: Metric | None = Field(
        None,
        description="metric that selects the best checkpoint; None: f1 or accuracy",
    )

    def get_pseudo_label_threshold(self) -> float:
        """Return the minimum confidence of a pseudo-label."""
        return self.pseudo_label_threshold

    def open(self, spec: DataSpec, dev: DataSpec) -> TrainDev:
        """Read sentences, or a graph; return the training set and the dev set."""
        if spec.is_graph:
            return open_graphs(spec, dev, self.reading, None)
        return super().open(spec, dev)

    @property
    def reading(self) -> Reading:
        """Return how graphs are read."""
        return Reading.of(self.source)

    def read(self, spec: DataSpec) -> Pairs:
        """Return the sentences of a file, as words and tags, or graphs with a label per node."""
        if spec.is_graph:
            return read_graph_pairs(spec, self.reading, None)
        check_no_media(spec, self.kind, "sentences")
        return read_tagged(spec.file(), spec.source_column, spec.target_column)[0]

    def fit(
        self, pairs: Sequence[Pair], model: Any = None, like: Task | None = None
    ) -> tuple["TagTask", "TagOptions", list[AutoSetting]]:
        """Fit the task to sentences. Return the task, complete options and automatic settings."""
        if not pairs:
            raise UserError("no sentences to train on")
        auto_settings, known = list[AutoSetting](), None if like is None else like.source
        sources = [pair.source for pair in pairs]
        source, section = fit_input(self.source, sources, "task.source", auto_settings, known)
        tags = sorted({tag for pair in pairs for tag in pair.target if tag is not None})
        if len(tags) < 2:
            each = "node" if source.unordered else "word"
            raise UserError(
                f"expected at least two tags, found one: every {each} has the tag {tags[0]!r}"
            )
        metric = self._metric(source, tags, auto_settings)
        options = self.model_copy(update={"metric": metric, "source": section})
        return task_class(source)(source, tags, metric), options, auto_settings

    def _metric(self, source: Input, tags: list[str], auto_settings: list[AutoSetting]) -> Metric:
        """Return the metric that selects the best checkpoint."""
        available = ("accuracy", "macro_f1") if source.unordered else SENTENCE_METRICS
        if self.metric is not None:
            if self.metric not in available:
                raise UserError(
                    f"task.metric={self.metric}: not available for this data; expected "
                    f"{' or '.join(available)}"
                )
            return self.metric
        if source.unordered:
            return "accuracy"
        metric: Metric = "f1" if is_span_scheme(tags) else "accuracy"
        reason = "the tags mark spans" if metric == "f1" else "one tag per word"
        auto_settings.append(AutoSetting("task.metric", metric, reason))
        return metric

    def load(self, folder: Path) -> "TagTask":
        """Return the task that `TagTask.save` wrote to a run folder."""
        path = folder / "vocabulary"
        tags, metric = read_fields(path / "task.json", tags=Names, metric=Metric)
        source = self.source.load(path)
        return task_class(source)(source, tags, metric)


def task_class(source: Input) -> Any:
    """Return the class of the task for an input: labels of nodes, or tags of words."""
    return NodeTask if source.unordered else TagTask
