"""Classification: one label per text or vector, or several (multi-label)."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from regard.baselines import BaselineFit, MostFrequentLabel
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.field_types import Finite, Names, Positive
from regard.core.files import write_json
from regard.data.checks.check_labels import LabelCheck, check_labels
from regard.data.corpus.corpora import Corpus, LabelCorpus
from regard.data.reading.read import Example, Pair
from regard.data.sources.open import DataSpec
from regard.inputs.input import Input
from regard.metrics import label_metrics
from regard.metrics.numbers import WeightedScores
from regard.models.encoder_model import EncoderModel, PooledOptions
from regard.search.search import SearchResult
from regard.tasks.inspection.forced_pass import InspectionRequest
from regard.tasks.inspection.pooled_pass import ClassifierPass, classifier_pass
from regard.tasks.label_pictures import label_pictures, mistakes
from regard.tasks.labeled_data import graphs_of, neighbor_fits, source_stats, text_or_vector
from regard.tasks.task import Prediction, Task
from regard.tasks.values import InputItem, predicted_and_expected

Metric = Literal["accuracy", "macro_f1", "f1", "subset_accuracy"]
TASK_FIELDS = {  # fields of task.json and their types
    "labels": Names,
    "is_multi_label": bool,
    "metric": Metric,
    "class_weights": dict[str, Finite] | None,
    "temperature": Positive,
}


class ClassifyTask(Task):
    """The classification task. temperature: divisor of the logits, fitted by `calibrate`."""

    kind = "classify"
    abilities = frozenset({"predict", "nbest"})

    def __init__(
        self,
        source: Input,
        labels: list[str],
        is_multi_label: bool,
        metric: str,
        class_weights: dict[str, float] | None = None,
        temperature: float = 1.0,
    ) -> None:
        self.source = source
        self.labels = labels
        self.is_multi_label = is_multi_label
        self.metric = metric
        self.class_weights = class_weights
        self.temperature = temperature
        self.label_ids = {label: id for id, label in enumerate(labels)}

    def build(self, options: PooledOptions) -> EncoderModel:
        """Return an encoder model with one output per label."""
        return options.build(self.source.shape, len(self.labels))

    def corpus(self, pairs: Sequence[Pair]) -> LabelCorpus:
        """Return the examples as tensors. Examples with unknown labels are skipped."""
        known = [p for p in pairs if all(label in self.label_ids for label in p.target)]
        if self.is_multi_label:
            labels = np.zeros((len(known), len(self.labels)), np.float32)
            for row, pair in enumerate(known):
                labels[row, [self.label_ids[label] for label in pair.target]] = 1
        else:
            labels = np.array([self.label_ids[pair.target[0]] for pair in known], np.int64)
        weight = None
        if self.class_weights is not None:
            each = [[self.class_weights[label] for label in p.target] or [1.0] for p in known]
            weight = np.array([np.mean(row) for row in each], np.float32)
        return LabelCorpus(self.source.encode([pair.source for pair in known]), labels, weight)

    def parse(self, text: str) -> Any:
        """Parse an input line into a source: a text, or the numbers of a vector."""
        return self.source.parse(text)

    def examples(self, pairs: Iterable[Pair]) -> list[Example]:
        """Return one example per pair. Raise UserError for several labels if training had one."""
        pairs = list(pairs)
        others = [pair for pair in pairs if len(pair.target) != 1]
        if others and not self.is_multi_label:
            raise UserError(
                f"line {others[0].line}: expected one label, as in training, found "
                f"{len(others[0].target)} ({len(others):,} of {len(pairs):,} examples are wrong)"
            )
        return super().examples(pairs)

    def stats(self, corpus: Corpus) -> DataStats:
        """Return the data statistics from which default settings are chosen."""
        return source_stats(self.source, corpus, len(self.labels), labels=True)

    def graph_items(self, spec: DataSpec) -> tuple[Iterator[InputItem], list[str]]:
        """Return one item per graph of a table of nodes, and notes."""
        return graphs_of(self.source, spec)

    to_source = staticmethod(text_or_vector)

    def forced_pass(self, request: InspectionRequest) -> ClassifierPass:
        """Return the forced pass over a source, with its predicted or the given labels."""
        return classifier_pass(request)

    def make_prediction(
        self, source: Any, row: np.ndarray | None, found: SearchResult, search: Any, nbest: int
    ) -> Prediction:
        """Return the labels of a source with calibrated probabilities. found: logits (C,)."""
        logits = torch.from_numpy(found) / self.temperature
        p = (logits.sigmoid() if self.is_multi_label else logits.softmax(-1)).numpy()
        order, threshold = np.argsort(-p, kind="stable"), search.threshold
        predicted = [i for i in order if p[i] >= threshold] if self.is_multi_label else [order[0]]
        value = tuple(self.labels[i] for i in predicted)
        top = tuple(
            Prediction(self.labels[i], float(np.log(max(p[i], 1e-30))), value=(self.labels[i],))
            for i in order[:nbest]
        )
        confidence = p[order[0]]
        if self.is_multi_label:
            confidence = np.where(p >= threshold, p, 1 - p).prod()
        return Prediction(
            ", ".join(value),
            float(np.log(max(confidence, 1e-30))),
            nbest=top,
            unknown_tokens=self.source.unknown(source),
            folded=self.source.folded(source),
            value=value,
            confidence=float(confidence),
            probabilities={self.labels[i]: float(p[i]) for i in order},
            is_scalar=not self.is_multi_label,
        )

    def compute_metrics(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> WeightedScores:
        """Return accuracy and macro-F1, or the multi-label metrics."""
        return label_metrics.measure_labels(
            *predicted_and_expected(predictions, examples), self.is_multi_label
        )

    def score(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, float]:
        """Return the metrics, including the expected calibration error (ECE)."""
        scores = super().score(predictions, examples)
        confidences = [p.confidence or 0.0 for p in predictions]
        pairs = zip(*predicted_and_expected(predictions, examples), strict=True)
        correct = [set(y_pred) == set(y_true) for y_pred, y_true in pairs]
        return scores | {"ece": label_metrics.calibration_error(confidences, correct)}

    def baseline_fits(self) -> list[BaselineFit]:
        """Return the most frequent label and, for texts, the label of the nearest neighbor."""
        constant = BaselineFit(MostFrequentLabel.name, MostFrequentLabel.fit)
        return [constant, *neighbor_fits(self.source)]

    def details(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, Any]:
        """Return metrics per class and, for single labels, confusion matrix and calibration."""
        y_pred, y_true = predicted_and_expected(predictions, examples)
        details: dict[str, Any] = {"classes": label_metrics.class_table(y_pred, y_true)}
        if not self.is_multi_label:
            details["confusion"] = label_metrics.confusion(y_pred, y_true)
            correct = [a == b for a, b in zip(y_pred, y_true, strict=True)]
            confidences = [prediction.confidence or 0.0 for prediction in predictions]
            details["reliability"] = label_metrics.reliability(confidences, correct)
            if found := mistakes(predictions, examples, self.source):
                details["mistakes"] = found
        return details

    def calibrate(self, predictor: Any, examples: Sequence[Example]) -> bool:
        """Fit the softmax or sigmoid temperature on the dev set (Guo et al. 2017)."""
        known = [e for e in examples if all(label in self.label_ids for label in e.references[0])]
        if not known:
            return False
        logits = np.stack(predictor.find([example.source for example in known]))  # (N, C)
        labels = self.corpus([Pair(e.source, e.references[0], 0) for e in known]).labels
        fit = (
            label_metrics.fit_temperature_multilabel
            if self.is_multi_label
            else label_metrics.fit_temperature
        )
        self.temperature = fit(logits, labels)
        return True

    def check(self, train: Sequence[Pair], dev: Sequence[Pair]) -> LabelCheck:
        """Return statistics of the data, and warnings about the data."""
        if not any(label in self.label_ids for pair in dev for label in pair.target or self.labels):
            raise UserError(
                f"no label of the dev set occurs in the training set, which has "
                f"{', '.join(self.labels[:5])}",
                help="check --target-column and the dev file",
            )
        sources = [[pair.source for pair in pairs] for pairs in (train, dev)]
        media = self.source.media_stats(*sources)
        found = check_labels(train, dev, self.source.unknown, self.source.plural, media)
        found.pictures = label_pictures(train, self.labels, self.source)
        return found

    def save(self, folder: Path) -> None:
        """Write the input and the labels to `vocabulary/` in the run folder."""
        path = folder / "vocabulary"
        path.mkdir(parents=True, exist_ok=True)
        self.source.save(path)
        write_json(path / "task.json", {name: getattr(self, name) for name in TASK_FIELDS})
