"""Estimators that predict labels or numbers: Tagger, Classifier, Regressor."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.core.files import read_json, write_json
from regard.data.reading.read import Pair
from regard.estimators.estimator import Estimator
from regard.inference.predictor import Predictor
from regard.tasks.labeled_data import text_or_vector
from regard.tasks.tag import TagTask
from regard.tasks.task import Prediction

LABEL_SETS = (list, tuple, set, frozenset)  # types of the labels of one multi-label example
CLASSES = "vocabulary/classes.json"  # file with `classes_`, if the labels are numbers


class Tagger(Estimator):
    """Sequence tagger. X: sentences as lists of words. y: one list of tags per sentence."""

    task = "tag"

    def _to_pairs(self, X: Any, y: Any) -> list[Pair]:
        """Convert sentences X and tags y, or pairs (words, tags), to training examples."""
        rows = list(X) if y is None else list(zip(X, y, strict=True))
        pairs = []
        for number, row in enumerate(rows, 1):
            if len(row) != 2:
                raise UserError(f"example {number}: expected (words, tags), found {row!r}")
            words, tags = TagTask.to_source(row[0], number), tuple(map(str, _split(row[1])))
            if len(words) != len(tags):
                raise UserError(
                    f"example {number}: expected one tag per word, found {len(words)} words and "
                    f"{len(tags)} tags"
                )
            pairs.append(Pair(words, tags, number))
        return pairs

    def _to_sources(self, X: Any) -> list[Any]:
        """Convert sentences to tuples of words. Strings are split at whitespace."""
        return [
            TagTask.to_source(row, number) for number, row in enumerate(super()._to_sources(X), 1)
        ]

    def predict(self, X: Any, batch_size: int = 64) -> list[list[str]]:
        """Return the tags of each sentence."""
        return [list(found.value) for found in self.predict_detailed(X, batch_size=batch_size)]

    def score(self, X: Any, y: Any = None) -> float:
        """Return the accuracy per word, from 0 to 1."""
        return self.evaluate(X, y)["accuracy"] / 100


def _split(row: Any) -> Sequence[Any]:
    return row.split() if isinstance(row, str) else row


class InputEstimator(Estimator):
    """Base class of Classifier and Regressor, whose sources are texts or vectors."""

    def _to_sources(self, X: Any) -> list[Any]:
        """Return texts unchanged, and vectors as tuples of floats."""
        sources = [
            text_or_vector(row, number) for number, row in enumerate(super()._to_sources(X), 1)
        ]
        for number, source in enumerate(sources, 1):
            if _shape(source) != _shape(sources[0]):
                raise UserError(
                    f"example {number}: expected {_shape(sources[0])} as in example 1, "
                    f"found {_shape(source)}"
                )
        return sources

    def _to_pairs(self, X: Any, y: Any) -> list[Pair]:
        """Convert sources X and targets y, or pairs (source, target), to training examples."""
        if y is None:
            rows = list(X)
            if any(isinstance(row, str) or len(row) != 2 for row in rows):
                raise UserError("expected pairs (source, target), or X and y")
            X, y = [row[0] for row in rows], [row[1] for row in rows]
        if len(X) != len(y):
            raise UserError(f"X has {len(X)} examples, but y has {len(y)}")
        sources = self._to_sources(X)
        targets = [self._to_target(value, number) for number, value in enumerate(y, 1)]
        both = zip(sources, targets, strict=True)
        return [Pair(source, target, n) for n, (source, target) in enumerate(both, 1)]

    def _to_target(self, value: Any, number: int) -> tuple[Any, ...]:
        """Return the target of an example as a tuple."""
        raise NotImplementedError


def _shape(source: Any) -> str:
    return "a text" if isinstance(source, str) else f"{len(source)} numbers"


class Classifier(InputEstimator):
    """Classifier of texts or vectors. For multi-label data, y has a list of labels per example."""

    task = "classify"
    classes_: np.ndarray

    def fit(
        self, X: Any, y: Any = None, dev: Any = None, init_from: Any = None, unlabeled: Any = None
    ) -> "Classifier":
        """Train on texts or vectors X and labels y, or on pairs. See `Estimator.fit`."""
        targets = [row[1] for row in X] if y is None else list(y)
        multi_label = any(isinstance(value, LABEL_SETS) for value in targets)
        names = {} if multi_label else {str(value): value for value in targets}
        super().fit(X, y, dev, init_from, unlabeled)
        self.classes_ = np.unique([names.get(label, label) for label in self.classes_.tolist()])
        if self.classes_.dtype.kind in "bif":  # so that predict returns numbers, not strings
            write_json(self.folder_ / CLASSES, self.classes_.tolist())
        return self

    def _set_predictor(self, predictor: Predictor) -> "Classifier":
        path, task = predictor.folder / CLASSES, predictor.task
        self.classes_ = np.array(read_json(path) if path.exists() else task.labels)  # type: ignore[attr-defined]
        return super()._set_predictor(predictor)

    def _to_target(self, value: Any, number: int) -> tuple[str, ...]:
        """Return the label or labels of an example as a tuple of strings."""
        if isinstance(value, np.ndarray) and value.ndim:
            raise UserError(
                f"example {number}: expected a label or a list of labels, found an array"
            )
        multi_label = isinstance(value, LABEL_SETS)
        labels = tuple(sorted(map(str, value))) if multi_label else (str(value),)
        if any(not label.strip() for label in labels):
            raise UserError(f"example {number}: a label is empty")
        return labels

    def predict(self, X: Any, batch_size: int = 64) -> Any:
        """Return an array with the label of each source; for multi-label data, lists of labels."""
        found = self.predict_detailed(X, batch_size=batch_size)
        if self.task_.is_multi_label:  # type: ignore[attr-defined]
            return [list(prediction.value) for prediction in found]
        indices = {str(label): index for index, label in enumerate(self.classes_)}
        return self.classes_[np.array([indices[p.value[0]] for p in found], int)]

    def predict_proba(self, X: Any, batch_size: int = 64) -> np.ndarray:
        """Return calibrated probabilities (N, C), with columns in the order of `classes_`."""
        found = self.predict_detailed(X, batch_size=batch_size)
        rows = [[probabilities(p)[str(label)] for label in self.classes_] for p in found]
        return np.array(rows).reshape(len(found), len(self.classes_))

    def score(self, X: Any, y: Any = None) -> float:
        """Return the accuracy (multi-label: subset accuracy), from 0 to 1."""
        scores = self.evaluate(X, y)
        return scores.get("accuracy", scores.get("subset_accuracy", 0.0)) / 100

    def __sklearn_tags__(self) -> Any:
        """Return the scikit-learn estimator tags."""
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags


def probabilities(prediction: Prediction) -> dict[str, float]:
    """Return the probability of each label of a prediction."""
    assert prediction.probabilities is not None
    return prediction.probabilities


class Regressor(InputEstimator):
    """Regressor for texts or vectors. y may have several numbers per example."""

    task = "regress"

    def _to_target(self, value: Any, number: int) -> tuple[float, ...]:
        """Return the target number or numbers of an example as a tuple."""
        try:
            numbers = tuple(float(part) for part in np.atleast_1d(np.asarray(value, np.float64)))
        except (TypeError, ValueError):
            numbers = (np.nan,)
        if not np.isfinite(numbers).all():
            raise UserError(f"example {number}: expected a finite number, found {value!r}")
        return numbers

    def _to_pairs(self, X: Any, y: Any) -> list[Pair]:
        """Convert sources X and numbers y, or pairs (source, numbers), to training examples."""
        pairs = super()._to_pairs(X, y)
        for pair in pairs:
            if len(pair.target) != len(pairs[0].target):
                raise UserError(
                    f"example {pair.line}: expected {len(pairs[0].target)} numbers as in example "
                    f"1, found {len(pair.target)}"
                )
        return pairs

    def predict(self, X: Any, batch_size: int = 64) -> np.ndarray:
        """Return the predicted numbers (N,), or (N, K) if each example has K numbers."""
        found = np.array([p.value for p in self.predict_detailed(X, batch_size=batch_size)])
        return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found

    def score(self, X: Any, y: Any = None) -> float:
        """Return R2: 1 is perfect, 0 is as good as predicting the mean."""
        return self.evaluate(X, y)["r2"]

    def __sklearn_tags__(self) -> Any:
        """Return the scikit-learn estimator tags."""
        from sklearn.utils import RegressorTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags
