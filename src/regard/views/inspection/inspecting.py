"""`regard.inspect`: inspect a fitted estimator on one text."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from regard.core.argument_names import names_arguments
from regard.core.errors import UserError
from regard.inference.model_capture import predictor_of
from regard.inference.predictor import Predictor
from regard.tasks.inspection.forced_pass import (
    MAX_TOKENS,
    ForcedOutput,
    InspectionRequest,
    no_step,
)
from regard.views.inspection.about import describe_model
from regard.views.inspection.internals import inspect_internals
from regard.views.inspection.value import Inspection


@names_arguments
def inspect(
    model: Any,
    text: Any,
    target: str | None = None,
    beam: int | None = None,
    max_tokens: int = MAX_TOKENS,
    on_step: Callable[[], None] = no_step,
    **search: Any,
) -> Inspection:
    """Return attention, alternatives, saliency, gates and the search tree for one input.

    model: a fitted estimator. text: the input, as in a line of an input file. A Tagger also accepts
    a list of words, and models of vectors accept a list of numbers. target: explain this output
    (forced decoding) instead of the model's own output. beam, search: search settings, as for
    `predict`. max_tokens: maximum number of tokens of source and of target. on_step: called between
    forward passes; it may raise an exception to cancel.
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
    """Inspect as `inspect` does, with search settings as a mapping.

    A mapping avoids clashes between names of settings and of arguments.
    """
    predictor = predictor_of(model)
    if not isinstance(predictor, Predictor):
        raise UserError(
            f"model: expected a fitted estimator, found {model!r}",
            help="use regard.load(folder) for a run folder",
        )
    task = predictor.task
    if isinstance(text, str):
        _check_surrogates("text", text)
        source = task.parse(text)
    else:
        source = task.source.from_value(text) if task.source.media else task.to_source(text)
    return inspect_source(predictor, source, target, search, max_tokens, on_step)


def inspect_source(
    predictor: Predictor,
    source: Any,
    target: str | None,
    search: Mapping[str, Any],
    max_tokens: int,
    on_step: Callable[[], None] = no_step,
) -> Inspection:
    """Inspect a source as the task parses it, with search settings as a mapping."""
    check_inspectable(predictor)
    task = predictor.task
    if task.source.written:
        _check_surrogates("text", task.source.text(source))
    _check_surrogates("target", target or "")
    changes = {name: value for name, value in search.items() if value is not None}
    options = predictor.search_options(**task.inspection_search(changes))
    request = InspectionRequest(predictor, source, target, options, max_tokens, on_step)
    forced_pass = task.forced_pass(request)
    assert forced_pass.output is not None
    _check_finite(forced_pass.output, predictor)
    return inspect_internals(forced_pass, describe_model(predictor))


def check_inspectable(predictor: Predictor) -> None:
    """Raise UserError if the engine of a model does not expose its internals."""
    if message := predictor.engine.why_not_inspectable(predictor.folder):
        raise UserError(message)


def _check_finite(output: ForcedOutput, predictor: Predictor) -> None:
    """Raise UserError if a probability or a number of the output is not finite."""
    for step in output.steps:
        number = step.value if step.probability is None else step.probability
        if number is not None and not math.isfinite(number):
            raise UserError(
                f"{predictor.folder}: the output is not finite: {number}",
                help="the weights are corrupted, or training diverged: regard diagnose RUN",
            )


def _check_surrogates(side: str, text: str) -> None:
    """Raise UserError for lone surrogates, which come from bytes that are not UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise UserError(f"{side}: expected UTF-8, found {text!r}") from None
