"""Options of classification."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from regard.core.errors import UserError
from regard.core.files import corrupted, read_fields
from regard.core.options import AutoSetting
from regard.data.reading.graphs import Reading
from regard.data.reading.labeled import read_labeled
from regard.data.reading.read import Pair, Pairs, split_dev
from regard.data.reading.vectors import looks_like_vectors, read_vectors
from regard.data.sources.graphs import open_graphs, read_graph_pairs
from regard.data.sources.media import Targets, as_labels, read_media, with_hint
from regard.data.sources.open import DataSpec, TrainDev
from regard.inputs import Inputs, fit_input
from regard.inputs.text import Text
from regard.tasks.classify import TASK_FIELDS, ClassifyTask, Metric
from regard.tasks.labeled_data import balanced_weights, check_not_streamed
from regard.tasks.task import Task
from regard.tasks.task_options import TaskOptions


class ClassifyOptions(TaskOptions):
    """Options of classification: one label per text or vector, or several (multi-label)."""

    kind: Literal["classify"] = "classify"
    source: Inputs = Field(Text(), description="input type and tokenizer")
    label_separator: str | None = Field(
        None, description="separator between labels (multi-label data)"
    )
    class_weight: Literal["none", "balanced"] = Field(
        "none", description="class weights; balanced: inversely proportional to class frequency"
    )
    pseudo_label_threshold: float = Field(
        0.9, gt=0, le=1, description="minimum confidence of a pseudo-label (--unlabeled)"
    )
    metric: Metric | None = Field(None, description="metric that selects the best checkpoint")

    def get_pseudo_label_threshold(self) -> float:
        """Return the minimum confidence of a pseudo-label."""
        return self.pseudo_label_threshold

    def open(self, spec: DataSpec, dev: DataSpec) -> TrainDev:
        """Read the data, which may be graphs; return the training set and the dev set."""
        if spec.is_graph:
            return open_graphs(spec, dev, Reading.of(self.source), self.to_labels)
        return super().open(spec, dev)

    def read(self, spec: DataSpec) -> Pairs:
        """Return the texts, vectors or images of a file with their labels."""
        columns = spec.source_column, spec.target_column
        if spec.is_graph:
            return read_graph_pairs(spec, Reading.of(self.source), self.to_labels)
        targets = Targets("labels", self._read_texts, as_labels, classes=True)
        if (media := read_media(spec, targets, self.source.prepare)) is not None:
            return media
        if looks_like_vectors(spec.file(), *columns, spec.other_columns):
            others = spec.other_columns
            return read_vectors(spec.file(), *columns, labels=True, others=others)[0]
        return with_hint(spec, check_not_streamed(spec, self._read_texts(spec)))

    def _read_texts(self, spec: DataSpec) -> Pairs:
        """Return the texts of a table with their labels."""
        columns = spec.source_column, spec.target_column
        return read_labeled(spec.file(), *columns, separator=self.label_separator)

    def to_labels(self, cell: str) -> tuple[str, ...]:
        """Return the label of a graph, or its labels if there may be several."""
        parts = cell.split(self.label_separator) if self.label_separator else [cell]
        return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))

    def hold_out(self, pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
        """Split off a dev set whose labels all occur in the training set, if possible."""
        train, dev = split_dev(pairs)
        known = {label for pair in train for label in pair.target}
        kept = [pair for pair in dev if known.issuperset(pair.target)]
        moved = [pair for pair in dev if not known.issuperset(pair.target)]
        return (train + moved, kept) if kept else (train, dev)

    def fit(
        self, pairs: Sequence[Pair], model: Any = None, like: Task | None = None
    ) -> tuple["ClassifyTask", "ClassifyOptions", list[AutoSetting]]:
        """Fit the task to examples. Return the task, complete options and automatic settings."""
        labels = sorted({label for pair in pairs for label in pair.target})
        if len(labels) < 2:
            raise UserError(
                f"expected at least two classes, found one: all labels are {labels[0]!r}"
                if labels
                else "no example has a label",
                help="" if labels else "choose the column with --target-column",
            )
        tree, auto_settings = self.model_dump(), list[AutoSetting]()
        known = None if like is None else like.source
        sources = [pair.source for pair in pairs]
        source, options = fit_input(self.source, sources, "task.source", auto_settings, known)
        tree["source"] = options.model_dump()
        multi_label = self.label_separator is not None or any(
            len(pair.target) != 1 for pair in pairs
        )
        tree["metric"] = self.metric or ("f1" if multi_label else "accuracy")
        available = (
            ("f1", "macro_f1", "subset_accuracy") if multi_label else ("accuracy", "macro_f1")
        )
        if tree["metric"] not in available:
            raise UserError(
                f"task.metric={tree['metric']}: not available for "
                f"{'multi-label' if multi_label else 'single-label'} data; expected "
                f"{' or '.join(available)}"
            )
        weights = balanced_weights(pairs, labels) if self.class_weight == "balanced" else None
        task = ClassifyTask(source, labels, multi_label, tree["metric"], weights)
        return task, ClassifyOptions.model_validate(tree), auto_settings

    def load(self, folder: Path) -> "ClassifyTask":
        """Return the task that `ClassifyTask.save` wrote to a run folder."""
        path = folder / "vocabulary"
        labels, multi_label, metric, weights, temperature = read_fields(
            path / "task.json", **TASK_FIELDS
        )
        if weights is not None and set(weights) != set(labels):
            raise corrupted(path / "task.json", "class_weights: expected one per label")
        source = self.source.load(path)
        return ClassifyTask(source, labels, multi_label, metric, weights, temperature)
