"""The way in: any fitted estimator and a text, to what is seen while it answers."""

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from regard.core.errors import UserError
from regard.estimators.estimator import Estimator
from regard.estimators.label_estimators import Classifier, Regressor, Tagger
from regard.estimators.language_estimator import LanguageModel
from regard.estimators.transducer import Transducer
from regard.inference.engine import Engine
from regard.models.ensemble import Ensemble
from regard.views.inspection.inspected_texts import MOST, refuse_halves
from regard.views.inspection.language_pass import inspect_language
from regard.views.inspection.pooled_pass import inspect_whole
from regard.views.inspection.tagger_pass import inspect_tagger
from regard.views.inspection.transducer_pass import inspect_transducer
from regard.views.inspection.value import Inspection

WRITTEN = {"temperature": 0.0, "length": 30}  # how a language model writes on if nothing is said
DRAWS = ("temperature", "top_k", "top_p", "min_p")


def inspect(
    estimator: Estimator,
    text: Any,
    target: str | None = None,
    beam: int | None = None,
    most: int = MOST,
    **search: Any,
) -> Inspection:
    """What is seen while a model answers one text.

    text: as a line of a file has it; a Tagger also takes a list of words, and models of vectors a
    list of numbers. target: an answer that the model is held to, in place of its own. beam and
    search: settings of the search, as `predict` takes them. most: symbols a side at most.
    """
    return inspected(estimator, text, target, {"beam": beam, **search}, most)


def inspected(
    estimator: Estimator, text: Any, target: str | None, search: Mapping[str, Any], most: int
) -> Inspection:
    """The same, with the settings of the search by name: none of them can mean anything else."""
    estimator._check_fitted()
    refuse_blind(estimator)
    source = _source(estimator, text)
    for what, given in (("text", source), ("target", target or "")):
        refuse_halves(what, given if isinstance(given, str) else " ".join(map(str, given)))
    options = estimator.search(**_changes(estimator, search))
    if isinstance(estimator, Transducer):
        return inspect_transducer(estimator, source, target, options, most)
    if isinstance(estimator, Tagger):
        return inspect_tagger(estimator, source, target, most)
    if isinstance(estimator, LanguageModel):
        return inspect_language(estimator, source, target, options, most)
    assert isinstance(estimator, Classifier | Regressor)
    return inspect_whole(estimator, source, target, options, most)


def _source(estimator: Estimator, text: Any) -> Any:
    """A text as the model reads it; words or numbers, where it reads such."""
    if isinstance(text, str):
        return estimator.task_.parse(text)
    if isinstance(estimator, Transducer | LanguageModel) or not isinstance(text, Iterable):
        raise UserError(f"a text expected, {text!r} found")
    return estimator.sources([text])[0]


def _changes(estimator: Estimator, search: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the search; a language model writes a little and greedily if none is said."""
    given = {name: value for name, value in search.items() if value is not None}
    if not isinstance(estimator, LanguageModel):
        return given
    drawn = any(name in given for name in DRAWS)
    usual = {name: value for name, value in WRITTEN.items() if name == "length" or not drawn}
    return usual | given


def refuse_blind(estimator: Estimator) -> None:
    """Refuses what cannot be looked into, and says what can."""
    model = estimator.model_
    if isinstance(model, Ensemble):
        raise UserError("several models that answer together are inspected one by one")
    if isinstance(model, Engine):
        folder = estimator.folder_
        if model.name == "torch":
            raise UserError(f"{folder}: with a shortlist nothing can be seen; load it without one")
        raise UserError(
            f"{folder}: the engine {model.name} shows nothing of its inside; inspect the folder of "
            "the run that it was exported from, with engine torch"
        )
    assert isinstance(model, nn.Module)
