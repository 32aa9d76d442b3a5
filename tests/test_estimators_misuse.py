"""Errors of estimators for invalid data and inputs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import regard
from regard import Classifier, LanguageModel, Regressor, Tagger, UserError


@pytest.mark.parametrize(
    ("model", "X", "y", "message"),
    [
        (Classifier, ["a", "b"], ["x"], "X has 2 examples, but y has 1"),
        (Classifier, ["a", "b", "c"], ["x", "x", "x"], "expected at least two classes"),
        (Classifier, ["a", (1.0, 2.0)], ["x", "y"], "example 2: expected a text as in example 1"),
        (Classifier, [(1, 2), (3,)], ["x", "y"], "example 2: expected 2 numbers as in example 1"),
        (Classifier, [(1, None)], ["x"], "example 1: expected a text or numbers"),
        (Classifier, [(1, np.nan)], ["x"], "example 1: expected finite numbers"),
        (Classifier, ["a", "b"], ["x", " "], "example 2: a label is empty"),
        (Regressor, ["a", "b"], ["one", "two"], "example 1: expected a finite number, found 'one'"),
        (Regressor, [(1,), (2,)], [1, np.inf], "example 2: expected a finite number, found inf"),
        (Regressor, [(1,), (2,)], [[1], [1, 2]], "example 2: expected 1 numbers as in example 1"),
        (Tagger, [["a", "b"]], [["X"]], "example 1: expected one tag per word, found 2 words"),
        (Tagger, [["a", ""]], [["X", "Y"]], "example 1: expected words"),
        (Tagger, [["a"], []], [["X"], []], "example 2: expected a sentence"),
        (LanguageModel, [], None, "expected at least one document"),
        (LanguageModel, ["a", 3], None, "document 2: expected a string, found 3"),
        (LanguageModel, ["a"], ["b"], "trained on texts only"),
    ],
)
def test_data_that_cannot_be_used(model: Any, X: Any, y: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        model(steps=1).fit(X, y)


def test_inputs_that_do_not_fit_the_model(models: Callable[[str], Any]) -> None:
    for kind, given, message in (
        (Regressor, [(1.0, 2.0, 3.0)], "X has 3 features, but Regressor is expecting 2"),
        (Regressor, ["abc"], "vector 1: expected 2 numbers, found 'abc'"),
        (Classifier, [(1.0, 2.0)], "example 1: expected a string"),
    ):
        with pytest.raises(UserError, match=message):
            regard.load(models(kind.task).run).predict(given)
    with pytest.raises(UserError, match="beam: unknown search setting of a language-model"):
        regard.load(models("language-model").run).predict(["a"], beam=2)
