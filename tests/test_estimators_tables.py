"""Columns and tables as X and y, such as those of pandas, which is not a dependency."""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from regard import Classifier, LanguageModel, Regressor, Tagger, Transducer, UserError

WORDS = [a + b + c for a in "abc" for b in "abc" for c in "abc"]
LABELS = [word[0] for word in WORDS]
FEW = {"model.encoder.width": 16, "training.validate_every": 999}
BOTH = FEW | {"model.decoder.width": 16}


class Column:
    """What regard uses of a pandas Series."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __getitem__(self, label: Any) -> Any:
        raise KeyError(label)  # labels are not positions

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        kind = object if isinstance(self.values[0], list) else None
        found = np.empty(len(self.values), kind) if kind else np.array(self.values)
        found[:] = self.values
        return found


class Table:
    """What regard uses of a pandas DataFrame: iteration yields the names of the columns."""

    def __init__(self, **columns: Any) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        rows = list(zip(*self.columns.values(), strict=True))
        numeric = all(isinstance(cell, float) for row in rows for cell in row)
        return np.array(rows, float if numeric else object)


def test_classifier() -> None:
    model = Classifier(steps=2, settings=FEW).fit(WORDS, LABELS, dev=(WORDS[:9], LABELS[:9]))
    expected = model.predict(WORDS).tolist()
    pairs = Table(word=WORDS, label=LABELS)
    one = Classifier(steps=2, settings=FEW).fit(pairs, dev=Table(word=WORDS[:9], label=LABELS[:9]))
    both = Column(WORDS), Column(LABELS)
    other = Classifier(steps=2, settings=FEW).fit(*both, dev=(WORDS[:9], LABELS[:9]))
    for found in (one, other):
        assert found.predict(Column(WORDS)).tolist() == expected
        assert found.predict(Table(word=WORDS)).tolist() == expected
        assert found.evaluate(pairs) == found.evaluate(*both) == model.evaluate(WORDS, LABELS)


def test_regressor_on_a_table_of_numbers() -> None:
    first, second = np.random.default_rng(0).normal(size=(2, 40))
    table = Table(first=first.tolist(), second=second.tolist())
    model = Regressor(steps=2, settings=FEW).fit(table, Column(first.tolist()))
    array = np.stack([first, second], 1)
    expected = Regressor(steps=2, settings=FEW).fit(array, first)
    assert model.n_features_in_ == 2
    assert np.array_equal(model.predict(table), expected.predict(array))
    assert model.score(table, Column(first.tolist())) == expected.score(array, first)


def test_transducer_tagger_and_language_model() -> None:
    words, turned = Column(WORDS), Column([word[::-1] for word in WORDS])
    table = Table(word=WORDS, turned=turned.values)
    model = Transducer(steps=2, settings=BOTH).fit(table)
    assert model.predict(words) == model.predict(WORDS)
    assert model.evaluate(words, turned) == model.evaluate(table)
    sentences = Column([[word, "x"] for word in WORDS])
    tags = Column([[word[0], "X"] for word in WORDS])
    tagger = Tagger(steps=2, settings=FEW).fit(sentences, tags)
    assert tagger.predict(sentences) == tagger.predict(sentences.values)
    texts = Column([f"{word} and {word}" for word in WORDS])
    language = LanguageModel(steps=2, settings={"model.decoder.width": 16}).fit(texts)
    assert len(language.log_likelihoods(texts)) == len(WORDS)


class NAType:
    """The missing value of pandas, which compares to nothing."""

    def __eq__(self, other: object) -> Any:
        raise TypeError("boolean value of NA is ambiguous")

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("missing", [None, float("nan"), np.float32("nan"), NAType()])
def test_missing_values_are_not_texts(missing: Any) -> None:
    for kind, X, y, what in (
        (Transducer, ["a", missing], ["b", "c"], "a source"),
        (Transducer, ["a", "b"], ["b", missing], "a target"),
        (Classifier, ["a", "b"], ["x", missing], "a label"),
        (Tagger, [["a"], missing], [["X"], ["Y"]], "a sentence"),
        (Tagger, [["a"], ["b"]], [["X"], missing], "tags"),
    ):
        with pytest.raises(UserError, match=f"example 2: expected {what}, found a missing value"):
            kind().fit(X, y)


class Sparse:
    def tocsr(self) -> "Sparse":
        return self


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (Sparse(), [1], "X: sparse matrices are not supported\nhelp: pass X.toarray"),
        (3, None, "X: expected a list, an array or a pandas column, found int"),
        ({"a": "b"}, None, "found dict"),
        (["a", "b"], "xy", "y: expected a list of texts, found one text"),
        ([1.0, 2.0], [1, 2], r"1D array of numbers\nhelp: Reshape your data: X.reshape"),
        (np.ones((4, 0)), np.ones(4), r"X has 0 feature\(s\) \(shape=\(4, 0\)\)"),
        ([[1.0, 2.0]], [1], "X has 1 sample: at least 2 are needed"),
        (np.ones((2, 2)) * 1j, [1, 2], "example 1: Complex data not supported"),
        ([[1.0], [np.inf]], [1, 2], "example 2: expected finite numbers, found inf at index 0"),
        ([[1.0], [2.0]], [0.5, 1.5], "example 1: expected a class label, found the continuous"),
        ([[1.0], [2.0]], np.ones((2, 2)), "for multi-label data, pass a list of labels"),
        (Table(a=["x"], b=["y"], c=["z"]), None, "example 1: expected a pair .source, target."),
    ],
)
def test_values_that_cannot_be_used(X: Any, y: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Classifier(steps=1).fit(X, y)


def test_a_wrong_type_is_also_a_type_error() -> None:
    with pytest.raises(TypeError, match=r"example 1: expected a text or numbers: float.. argument"):
        Regressor().fit([[{"a": 1}], [2]], [1, 2])


def test_labels_in_a_column_of_a_table() -> None:
    vectors, labels = np.arange(20.0).reshape(-1, 1), np.arange(20) % 2
    with pytest.warns(UserWarning, match="A column-vector y was passed"):
        model = Classifier(steps=1, settings=FEW).fit(vectors, labels[:, None])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = Classifier(steps=1, settings=FEW).fit(vectors, labels)
    assert model.predict(vectors).tolist() == other.predict(vectors).tolist()
