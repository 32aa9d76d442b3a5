"""What a type checker knows about calls of the Python interface: `make lint` checks this file."""

from typing import Any

import numpy as np
from typing_extensions import assert_type

import regard
from regard.estimators import Estimator


def check_load() -> None:
    """`kind` decides the class of a loaded model."""
    assert_type(regard.load("run"), Estimator)
    assert_type(regard.load("run", "torch", "int8"), Estimator)
    assert_type(regard.load("run", kind=regard.Classifier), regard.Classifier)
    assert_type(regard.load("run", kind=regard.Transducer), regard.Transducer)


def check_results() -> None:
    """Arguments and results of methods are typed, and unknown names are errors."""
    classifier = regard.load("run", kind=regard.Classifier)
    assert_type(classifier.fit(["a"], ["b"]), regard.Classifier)
    assert_type(classifier.predict_proba(["a"]), np.ndarray)
    assert_type(classifier.evaluate(["a"], ["b"]), dict[str, float])
    assert_type(regard.Tagger(steps=3).predict(["a b"]), list[list[str]])
    assert_type(regard.load("run").predict(["a"]), Any)
    assert_type(regard.inspect(classifier, "a"), regard.Inspection)
    classifier.no_such_method()  # type: ignore[attr-defined]
    regard.load("run", kind=str)  # type: ignore[type-var]
