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
    max_tokens: int = LIMIT,
    on_step: Callable[[], None] = no_step,
    **search: Any,
) -> Inspection:
    """Return attention, alternatives, saliency, gates and the search tree for one input.

    model: a fitted estimator. text: the input, as in a line of an input file; a Tagger also accepts
    a list of words, and models of vectors a list of numbers. target: explain this output (forced
    decoding) instead of the model's own. beam, search: search settings, as for `predict`.
    max_tokens: maximum number of tokens per side. on_step: called between passes; raise an
    exception in it to cancel.
    """
    return inspect_with_options(model, text, target, {"beam": beam, **search}, max_tokens, on_step)


def inspect_with_options(
    model: Any,
    text: Any,
    target: str | None,
    search: Mapping[str, Any],
    max_tokens: int,
    on_step: Callable[[], None] = no_step,
) -> Inspection:
    """The same, with the settings of the search by name: none of them can mean anything else."""
    predictor: Predictor = predictor_of(model)
    if refusal := predictor.engine.hidden(predictor.folder):
        raise UserError(refusal)
    task = predictor.task
    if not isinstance(text, Iterable):
        raise UserError(f"a text expected, {text!r} found")
    source = task.parse(text) if isinstance(text, str) else task.to_source(text)
    for what, given in (("text", source), ("target", target or "")):
        _refuse_halves(what, given if isinstance(given, str) else " ".join(map(str, given)))
    changes = {name: value for name, value in search.items() if value is not None}
    options = predictor.search_options(**task.inspection_search(changes))
    asked = Asked(predictor, source, target, options, max_tokens, on_step)
    return inside(task.question(asked), about(predictor))


def _refuse_halves(what: str, text: str) -> None:
    """Refuse half surrogate pairs, which no file can hold: so arrives what was no UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UserError(f"{what}: {text!r}: no UTF-8, which is expected") from None
