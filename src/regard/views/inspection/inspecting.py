"""The way in: any fitted estimator and a text, to what is seen while it answers."""

from collections.abc import Iterable, Mapping
from typing import Any

from regard.core.errors import UserError
from regard.inference.model_capture import predictor_of
from regard.inference.predictor import Predictor
from regard.views.inspection.inspected_texts import MOST, refuse_halves
from regard.views.inspection.language_pass import inspect_language
from regard.views.inspection.pooled_pass import inspect_whole
from regard.views.inspection.tagger_pass import inspect_tagger
from regard.views.inspection.transducer_pass import inspect_transducer
from regard.views.inspection.value import Inspection

WRITTEN = {"temperature": 0.0, "length": 30}  # how a language model writes on if nothing is said
DRAWS = ("temperature", "top_k", "top_p", "min_p")


INSPECT: dict[str, Any] = {
    "transduce": inspect_transducer,
    "tag": inspect_tagger,
    "language-model": inspect_language,
    "classify": inspect_whole,
    "regress": inspect_whole,
}


def inspect(
    model: Any,
    text: Any,
    target: str | None = None,
    beam: int | None = None,
    most: int = MOST,
    **search: Any,
) -> Inspection:
    """What is seen while a model answers one text.

    model: a fitted estimator. text: as a line of a file has it; a Tagger also takes a list of
    words, and models of vectors a list of numbers. target: an answer that the model is held to, in
    place of its own. beam and search: settings of the search, as `predict` takes them. most:
    symbols a side at most.
    """
    return inspected(model, text, target, {"beam": beam, **search}, most)


def inspected(
    model: Any, text: Any, target: str | None, search: Mapping[str, Any], most: int
) -> Inspection:
    """The same, with the settings of the search by name: none of them can mean anything else."""
    predictor: Predictor = predictor_of(model)
    refuse_blind(predictor)
    source = _source(model, predictor, text)
    for what, given in (("text", source), ("target", target or "")):
        refuse_halves(what, given if isinstance(given, str) else " ".join(map(str, given)))
    options = predictor.search(**_changes(predictor, search))
    found: Inspection = INSPECT[predictor.task.kind](predictor, source, target, options, most)
    return found


def _source(model: Any, predictor: Predictor, text: Any) -> Any:
    """A text as the model reads it; words or numbers, where it reads such."""
    if isinstance(text, str):
        return predictor.task.parse(text)
    if "stream" in predictor.task.abilities or not isinstance(text, Iterable):
        raise UserError(f"a text expected, {text!r} found")
    return model.sources([text])[0]


def _changes(predictor: Predictor, search: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the search; a language model writes a little and greedily if none is said."""
    given = {name: value for name, value in search.items() if value is not None}
    if "continue" not in predictor.task.abilities:
        return given
    drawn = any(name in given for name in DRAWS)
    usual = {name: value for name, value in WRITTEN.items() if name == "length" or not drawn}
    return usual | given


def refuse_blind(predictor: Predictor) -> None:
    """Refuses what cannot be looked into, and says what can."""
    if predictor.module is None:
        folder, name = predictor.folder, predictor.engine.name
        if name == "torch":
            raise UserError(f"{folder}: with a shortlist nothing can be seen; load it without one")
        raise UserError(
            f"{folder}: the engine {name} shows nothing of its inside; inspect the folder of "
            "the run that it was exported from, with engine torch"
        )
    if hasattr(predictor.module, "models"):
        raise UserError("several models that answer together are inspected one by one")
