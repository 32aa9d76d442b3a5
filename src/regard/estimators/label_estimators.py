"""Estimators that predict a label or numbers per source: Classifier, Regressor."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.core.argument_names import names_arguments
from regard.core.errors import UserError
from regard.core.files import read_json, write_json
from regard.data.reading.read import Pair
from regard.estimators.input_estimator import InputEstimator
from regard.estimators.rows import check_present, to_columns
from regard.estimators.sklearn_classes import conversion_warning
from regard.inference.predictor import Predictor
from regard.tasks.task import Prediction

if TYPE_CHECKING:
    from typing_extensions import Self

LABEL_SETS = (list, tuple, set, frozenset)  # types of the labels of one multi-label example
CLASSES = "vocabulary/classes.json"  # file with `classes_`, if the labels are numbers


class Classifier(InputEstimator):
    """Classifier of texts, vectors or images.

    For multi-label data, y has a list of labels per example. After fit, `classes_` has the labels,
    and `n_features_in_` the numbers per vector.
    """

    task = "classify"
    classes_: np.ndarray

    @names_arguments
    def fit(
        self, X: Any, y: Any = None, dev: Any = None, init_from: Any = None, unlabeled: Any = None
    ) -> "Self":
        """Train on texts, vectors or images X and labels y, or on pairs X = [(source, label), ...].

        X, y, dev, init_from, unlabeled: as for `Estimator.fit`.
        """
        X, y = to_columns(X, _one_column(y))
        multi_label = any(isinstance(value, LABEL_SETS) for value in y)
        names = {} if multi_label else {str(value): value for value in y}
        super().fit(X, y, dev, init_from, unlabeled)
        self.classes_ = np.unique([names.get(label, label) for label in self.classes_.tolist()])
        if self.classes_.dtype.kind in "bif":  # so that predict returns numbers, not strings
            write_json(self.folder_ / CLASSES, self.classes_.tolist())
        return self

    def _set_predictor(self, predictor: Predictor) -> "Self":
        path, task = predictor.folder / CLASSES, predictor.task
        self.classes_ = np.array(read_json(path) if path.exists() else task.labels)  # type: ignore[attr-defined]
        return super()._set_predictor(predictor)

    def _to_target(self, value: Any, number: int) -> tuple[str, ...]:
        """Return the label or labels of an example as a tuple of strings."""
        if isinstance(value, np.ndarray) and value.ndim:
            raise UserError(
                f"example {number}: expected a label or a list of labels, found an array",
                help="for multi-label data, pass a list of labels per example",
            )
        check_present(value, number, "a label")
        if isinstance(value, float | np.floating) and not value.is_integer():
            raise UserError(
                f"example {number}: expected a class label, found the continuous number {value}",
                help="use a Regressor, or pass the labels as strings",
            )
        multi_label = isinstance(value, LABEL_SETS)
        labels = tuple(sorted(map(str, value))) if multi_label else (str(value),)
        if any(not label.strip() for label in labels):
            raise UserError(f"example {number}: a label is empty")
        return labels

    def _to_pairs(self, X: Any, y: Any) -> list[Pair]:
        """Convert sources X and labels y, or pairs (source, label), to training examples."""
        return super()._to_pairs(X, _one_column(y))

    @names_arguments
    def predict(self, X: Any, batch_size: int = 64) -> Any:
        """Return an array with the label of each source; for multi-label data, lists of labels.

        X: texts, vectors or images. batch_size: sources per batch; it does not change predictions.
        """
        found = self.predict_detailed(X, batch_size=batch_size)
        if self.task_.is_multi_label:  # type: ignore[attr-defined]
            return [list(prediction.value) for prediction in found]
        indices = {str(label): index for index, label in enumerate(self.classes_)}
        return self.classes_[np.array([indices[p.value[0]] for p in found], int)]

    @names_arguments
    def predict_proba(self, X: Any, batch_size: int = 64) -> np.ndarray:
        """Return calibrated probabilities (N, C), with columns in the order of `classes_`.

        X: texts, vectors or images. batch_size: sources per batch; it does not change predictions.
        """
        found = self.predict_detailed(X, batch_size=batch_size)
        rows = [[probabilities(p)[str(label)] for label in self.classes_] for p in found]
        return np.array(rows).reshape(len(found), len(self.classes_))

    @names_arguments
    def score(self, X: Any, y: Any = None) -> float:
        """Return the accuracy (multi-label: subset accuracy), from 0 to 1.

        X, y: sources and labels, or pairs X.
        """
        scores = self.evaluate(X, y)
        return scores.get("accuracy", scores.get("subset_accuracy", 0.0)) / 100

    def __sklearn_tags__(self) -> Any:
        """Return the scikit-learn estimator tags."""
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags


def _one_column(y: Any) -> Any:
    """Return labels as they are, or the column of a table (N, 1), with a warning."""
    table: np.ndarray = np.asarray(y if hasattr(y, "__array__") else 0)
    if table.ndim != 2 or table.shape[1] != 1:
        return y
    warnings.warn(
        "A column-vector y was passed when a 1d array was expected. Please change the shape of y "
        "to (n_samples,), for example with ravel().",
        conversion_warning(),
        stacklevel=4,
    )
    return table[:, 0]


def probabilities(prediction: Prediction) -> dict[str, float]:
    """Return the probability of each label of a prediction."""
    assert prediction.probabilities is not None
    return prediction.probabilities


class Regressor(InputEstimator):
    """Regressor for texts, vectors or images. y may have several numbers per example.

    After fit, `n_features_in_` has the numbers per vector.
    """

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

    @names_arguments
    def predict(self, X: Any, batch_size: int = 64) -> np.ndarray:
        """Return the predicted numbers (N,), or (N, K) if each example has K numbers.

        X: texts, vectors or images. batch_size: sources per batch; it does not change predictions.
        """
        found = np.array([p.value for p in self.predict_detailed(X, batch_size=batch_size)])
        return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found

    @names_arguments
    def score(self, X: Any, y: Any = None) -> float:
        """Return R2: 1 is perfect, 0 is as good as predicting the mean.

        X, y: sources and numbers, or pairs X.
        """
        return self.evaluate(X, y)["r2"]

    def __sklearn_tags__(self) -> Any:
        """Return the scikit-learn estimator tags."""
        from sklearn.utils import RegressorTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        tags.target_tags.multi_output = True
        return tags
