"""Classification, N to 1: one label for a text or a vector, or several."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.files import write_json
from regard.data.checks.check_labels import LabelCheck, check_labels
from regard.data.corpus.corpora import Corpus, LabelCorpus
from regard.data.reading.read import Example, Pair
from regard.inputs.input import Input
from regard.metrics import label_metrics as measure
from regard.metrics.numbers import WeightedScores
from regard.models.encoder_model import EncoderModel, PooledOptions
from regard.search.search import SearchResult
from regard.tasks.inspection.forced_pass import InspectionRequest
from regard.tasks.inspection.pooled_pass import ClassifierPass, classifier_pass
from regard.tasks.labeled_data import source_stats, text_or_vector
from regard.tasks.task import Prediction, Task
from regard.tasks.values import columns

FACTS = (
    "labels",
    "is_multi_label",
    "metric",
    "class_weights",
    "temperature",
)  # what task.json holds


class ClassifyTask(Task):
    """Sources, labels, and the temperature that makes probabilities true."""

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
        self.numbers = {label: number for number, label in enumerate(labels)}

    def build(self, options: PooledOptions) -> EncoderModel:
        """A labeler with one output a label."""
        return options.build(self.source.shape, len(self.labels))

    def corpus(self, pairs: Sequence[Pair]) -> LabelCorpus:
        """The examples as numbers; those whose labels training never saw are left out."""
        known = [p for p in pairs if all(label in self.numbers for label in p.target)]
        if self.is_multi_label:
            labels = np.zeros((len(known), len(self.labels)), np.float32)
            for row, pair in enumerate(known):
                labels[row, [self.numbers[label] for label in pair.target]] = 1
        else:
            labels = np.array([self.numbers[pair.target[0]] for pair in known], np.int64)
        weight = None
        if self.class_weights is not None:
            each = [[self.class_weights[label] for label in p.target] or [1.0] for p in known]
            weight = np.array([np.mean(row) for row in each], np.float32)
        return LabelCorpus(self.source.encode([pair.source for pair in known]), labels, weight)

    def parse(self, text: str) -> Any:
        """A text, or the numbers of a line."""
        return self.source.parse(text)

    def examples(self, pairs: Iterable[Pair]) -> list[Example]:
        """Each pair; one with several labels only where training had such."""
        pairs = list(pairs)
        odd = [pair for pair in pairs if len(pair.target) != 1]
        if odd and not self.is_multi_label:
            raise UserError(
                f"line {odd[0].line}: one label expected, as in training, {len(odd[0].target)} "
                f"found, as in {len(odd):,} of {len(pairs):,} examples"
            )
        return super().examples(pairs)

    def stats(self, corpus: Corpus) -> DataStats:
        """What the choice of a model depends on."""
        return source_stats(self.source, corpus, len(self.labels), labels=True)

    to_source = staticmethod(text_or_vector)

    def forced_pass(self, request: InspectionRequest) -> ClassifierPass:
        """Return the pass over the labels of a source, or over given ones."""
        return classifier_pass(request)

    def make_prediction(
        self, source: Any, row: np.ndarray | None, found: SearchResult, search: Any, nbest: int
    ) -> Prediction:
        """The label or labels of a source, with calibrated probabilities. found: (C,) scores."""
        logits = torch.from_numpy(found) / self.temperature
        p = (logits.sigmoid() if self.is_multi_label else logits.softmax(-1)).numpy()
        order, threshold = np.argsort(-p, kind="stable"), search.threshold
        given = [i for i in order if p[i] >= threshold] if self.is_multi_label else [order[0]]
        value = tuple(self.labels[i] for i in given)
        others = tuple(
            Prediction(self.labels[i], float(np.log(max(p[i], 1e-30))), value=(self.labels[i],))
            for i in order[:nbest]
        )
        sure = np.where(p >= threshold, p, 1 - p).prod() if self.is_multi_label else p[order[0]]
        return Prediction(
            ", ".join(value),
            float(np.log(max(sure, 1e-30))),
            nbest=others,
            unknown_tokens=self.source.unknown(source),
            value=value,
            confidence=float(sure),
            probabilities={self.labels[i]: float(p[i]) for i in order},
            is_scalar=not self.is_multi_label,
        )

    def compute_metrics(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> WeightedScores:
        """accuracy and macro-F1; of several labels F1."""
        return measure.measure_labels(*columns(predictions, examples), self.is_multi_label)

    def score(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, float]:
        """The same, and how true the probabilities are."""
        scores, sure = (
            super().score(predictions, examples),
            [p.confidence or 0.0 for p in predictions],
        )
        pairs = zip(*columns(predictions, examples), strict=True)
        right = [set(given) == set(wanted) for given, wanted in pairs]
        return scores | {"ece": measure.calibration_error(sure, right)}

    def details(
        self, predictions: Sequence[Prediction], examples: Sequence[Example]
    ) -> dict[str, Any]:
        """The table of classes, what is taken for what, and how true probabilities are."""
        given, wanted = columns(predictions, examples)
        found: dict[str, Any] = {"classes": measure.class_table(given, wanted)}
        if not self.is_multi_label:
            found["confusion"] = measure.confusion(given, wanted)
            right = [a == b for a, b in zip(given, wanted, strict=True)]
            sure = [prediction.confidence or 0.0 for prediction in predictions]
            found["reliability"] = measure.reliability(sure, right)
        return found

    def calibrate(self, predictor: Any, examples: Sequence[Example]) -> bool:
        """Fits the temperature on dev (Guo et al. 2017): labels stay, probabilities become true."""
        known = [e for e in examples if all(label in self.numbers for label in e.references[0])]
        if not known:
            return False
        logits = np.stack(predictor.find([example.source for example in known]))  # (N, C)
        labels = self.corpus([Pair(e.source, e.references[0], 0) for e in known]).labels
        fit = measure.fit_temperature_multilabel if self.is_multi_label else measure.fit_temperature
        self.temperature = fit(logits, labels)
        return True

    def check(self, train: Sequence[Pair], dev: Sequence[Pair]) -> LabelCheck:
        """What is in the data, and what is odd."""
        if not any(label in self.numbers for pair in dev for label in pair.target or self.labels):
            raise UserError(
                f"no label of the dev part is in the training part, which has "
                f"{', '.join(self.labels[:5])}; is it another column, or another file?"
            )
        return check_labels(train, dev, self.source.unknown)

    def save(self, folder: Path) -> None:
        """Writes `vocabulary/`."""
        place = folder / "vocabulary"
        place.mkdir(parents=True, exist_ok=True)
        self.source.save(place)
        write_json(place / "task.json", {name: getattr(self, name) for name in FACTS})
