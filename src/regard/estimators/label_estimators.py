"""Estimators that give labels or numbers: Tagger, Classifier, Regressor."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.core.files import read_json, write_json
from regard.data.reading.read import Pair
from regard.estimators.estimator import Estimator
from regard.inference.predictor import Predictor
from regard.tasks.labeled_data import text_or_vector
from regard.tasks.tag import Tag
from regard.tasks.task import Prediction

SEVERAL = (list, tuple, set, frozenset)  # of labels
CLASSES = "vocabulary/classes.json"  # labels that are no texts, as the user gave them


class Tagger(Estimator):
    """A tag for each word. X: sentences, as lists of words; y: a list of tags for each."""

    task = "tag"

    def pairs(self, X: Any, y: Any) -> list[Pair]:
        """Examples from sentences and tags, or from pairs of them."""
        rows = list(X) if y is None else list(zip(X, y, strict=True))
        pairs = []
        for number, row in enumerate(rows, 1):
            if len(row) != 2:
                raise UserError(f"example {number}: (words, tags) expected, {row!r} found")
            words, tags = Tag.source_of(row[0], number), tuple(map(str, _cut(row[1])))
            if len(words) != len(tags):
                raise UserError(
                    f"example {number}: {len(words)} words but {len(tags)} tags; one tag for "
                    "each word is expected"
                )
            pairs.append(Pair(words, tags, number))
        return pairs

    def sources(self, X: Any) -> list[Any]:
        """Sentences as words; a text is cut at its spaces."""
        return [Tag.source_of(row, number) for number, row in enumerate(super().sources(X), 1)]

    def predict(self, X: Any, batch_size: int = 64) -> list[list[str]]:
        """The tags of each sentence."""
        return [list(found.value) for found in self.predictions(X, batch_size=batch_size)]

    def score(self, X: Any, y: Any = None) -> float:
        """The share of right tags, 0 to 1."""
        return self.evaluate(X, y)["accuracy"] / 100


def _cut(row: Any) -> Sequence[Any]:
    return row.split() if isinstance(row, str) else row


class Whole(Estimator):
    """One answer for a text or a vector of numbers."""

    def sources(self, X: Any) -> list[Any]:
        """Texts as they are, vectors as tuples of numbers."""
        found = [text_or_vector(row, number) for number, row in enumerate(super().sources(X), 1)]
        for number, source in enumerate(found, 1):
            if _shape(source) != _shape(found[0]):
                raise UserError(
                    f"example {number}: {_shape(found[0])} expected as in example 1, "
                    f"{_shape(source)} found"
                )
        return found

    def pairs(self, X: Any, y: Any) -> list[Pair]:
        """Examples from sources and answers, or from pairs of them."""
        if y is None:
            rows = list(X)
            if any(isinstance(row, str) or len(row) != 2 for row in rows):
                raise UserError("pairs of source and answer expected, or X and y")
            X, y = [row[0] for row in rows], [row[1] for row in rows]
        if len(X) != len(y):
            raise UserError(f"X has {len(X)} examples, y has {len(y)} answers")
        sources = self.sources(X)
        answers = [self.answer(value, number) for number, value in enumerate(y, 1)]
        both = zip(sources, answers, strict=True)
        return [Pair(source, answer, n) for n, (source, answer) in enumerate(both, 1)]

    def answer(self, value: Any, number: int) -> tuple[Any, ...]:
        """The answer of an example as a tuple."""
        raise NotImplementedError


def _shape(source: Any) -> str:
    return "a text" if isinstance(source, str) else f"{len(source)} numbers"


class Classifier(Whole):
    """A label for a text or a vector; y may hold a list of labels for each."""

    task = "classify"
    classes_: np.ndarray

    def fit(
        self, X: Any, y: Any = None, dev: Any = None, start: Any = None, unlabeled: Any = None
    ) -> "Classifier":
        """Trains on texts or vectors X and labels y, or on pairs of them; see `Estimator.fit`."""
        found = [row[1] for row in X] if y is None else list(y)
        several = any(isinstance(value, SEVERAL) for value in found)
        names = {} if several else {str(value): value for value in found}
        super().fit(X, y, dev, start, unlabeled)
        self.classes_ = np.unique([names.get(label, label) for label in self.classes_.tolist()])
        if self.classes_.dtype.kind in "bif":  # numbers come back as numbers
            write_json(self.folder_ / CLASSES, self.classes_.tolist())
        return self

    def _take(self, predictor: Predictor) -> "Classifier":
        path, task = predictor.folder / CLASSES, predictor.task
        self.classes_ = np.array(read_json(path) if path.exists() else task.labels)  # type: ignore[attr-defined]
        return super()._take(predictor)

    def answer(self, value: Any, number: int) -> tuple[str, ...]:
        """The label, or the labels of a list."""
        if isinstance(value, np.ndarray) and value.ndim:
            raise UserError(f"example {number}: a label or a list of labels expected, a row found")
        several = isinstance(value, SEVERAL)
        labels = tuple(sorted(map(str, value))) if several else (str(value),)
        if any(not label.strip() for label in labels):
            raise UserError(f"example {number}: a label is empty")
        return labels

    def predict(self, X: Any, batch_size: int = 64) -> Any:
        """The label of each source, as an array; a list of labels where there may be several."""
        found = self.predictions(X, batch_size=batch_size)
        if self.task_.several:  # type: ignore[attr-defined]
            return [list(prediction.value) for prediction in found]
        places = {str(label): place for place, label in enumerate(self.classes_)}
        return self.classes_[np.array([places[p.value[0]] for p in found], int)]

    def predict_proba(self, X: Any, batch_size: int = 64) -> np.ndarray:
        """(N, classes) calibrated probabilities, in the order of `classes_`."""
        found = self.predictions(X, batch_size=batch_size)
        rows = [[shares(p)[str(label)] for label in self.classes_] for p in found]
        return np.array(rows).reshape(len(found), len(self.classes_))

    def score(self, X: Any, y: Any = None) -> float:
        """The share of right answers, 0 to 1."""
        scores = self.evaluate(X, y)
        return scores.get("accuracy", scores.get("subset_accuracy", 0.0)) / 100

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn wants to know; only called by it."""
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        return tags


def shares(prediction: Prediction) -> dict[str, float]:
    """The probabilities of a prediction."""
    assert prediction.probabilities is not None
    return prediction.probabilities


class Regressor(Whole):
    """A number for a text or a vector; y may hold several numbers for each."""

    task = "regress"

    def answer(self, value: Any, number: int) -> tuple[float, ...]:
        """The number or the numbers."""
        try:
            numbers = tuple(float(part) for part in np.atleast_1d(np.asarray(value, np.float64)))
        except (TypeError, ValueError):
            numbers = (np.nan,)
        if not np.isfinite(numbers).all():
            raise UserError(f"example {number}: a finite number expected, {value!r} found")
        return numbers

    def pairs(self, X: Any, y: Any) -> list[Pair]:
        """Examples from sources and numbers, or from pairs of them; all of as many numbers."""
        pairs = super().pairs(X, y)
        for pair in pairs:
            if len(pair.target) != len(pairs[0].target):
                raise UserError(
                    f"example {pair.line}: {len(pairs[0].target)} numbers expected as in example "
                    f"1, {len(pair.target)} found"
                )
        return pairs

    def predict(self, X: Any, batch_size: int = 64) -> np.ndarray:
        """(N,) numbers in the unit of the data, or (N, K) where there are several."""
        found = np.array([p.value for p in self.predictions(X, batch_size=batch_size)])
        return found[:, 0] if found.ndim == 2 and found.shape[1] == 1 else found

    def score(self, X: Any, y: Any = None) -> float:
        """R2: 1 is perfect, 0 as good as always giving the mean."""
        return self.evaluate(X, y)["r2"]

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn wants to know; only called by it."""
        from sklearn.utils import RegressorTags

        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        return tags
