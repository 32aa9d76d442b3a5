"""The way in: any fitted estimator and a text, to what is seen while it predicts."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from regard.core.errors import UserError
from regard.inference.model_capture import predictor_of
from regard.inference.predictor import Predictor
from regard.tasks.questions.question import LIMIT, Asked, no_step
from regard.views.inspection.about import about
from regard.views.inspection.internals import inside
from regard.views.inspection.value import Inspection


def inspect(
    model: Any,
    text: Any,
    target: str | None = None,
    beam: int | None = None,
    most: int = LIMIT,
    on_step: Callable[[], None] = no_step,
    **search: Any,
) -> Inspection:
    """What is seen while a model answers one text.

    model: a fitted estimator. text: as a line of a file has it; a Tagger also takes a list of
    words, and models of vectors a list of numbers. target: an answer that the model is held to, in
    place of its own. beam and search: settings of the search, as `predict` takes them. most:
    tokens a side at most. on_step: is called between passes, and may raise to cancel.
    """
    return inspected(model, text, target, {"beam": beam, **search}, most, on_step)


def inspected(
    model: Any,
    text: Any,
    target: str | None,
    search: Mapping[str, Any],
    most: int,
    on_step: Callable[[], None] = no_step,
) -> Inspection:
    """The same, with the settings of the search by name: none of them can mean anything else."""
    predictor: Predictor = predictor_of(model)
    if refusal := predictor.engine.hidden(predictor.folder):
        raise UserError(refusal)
    task = predictor.task
    if not isinstance(text, Iterable):
        raise UserError(f"a text expected, {text!r} found")
    source = task.parse(text) if isinstance(text, str) else task.source_of(text)
    for what, given in (("text", source), ("target", target or "")):
        _refuse_halves(what, given if isinstance(given, str) else " ".join(map(str, given)))
    changes = {name: value for name, value in search.items() if value is not None}
    options = predictor.search_options(**task.inspection_search(changes))
    asked = Asked(predictor, source, target, options, most, on_step)
    return inside(task.question(asked), about(predictor))


def _refuse_halves(what: str, text: str) -> None:
    """Refuse half surrogate pairs, which no file can hold: so arrives what was no UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UserError(f"{what}: {text!r}: no UTF-8, which is expected") from None
