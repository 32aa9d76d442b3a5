"""The cost of a request, estimated before it runs.

The unit is one step of one hypothesis; a source token costs as much. The estimate assumes that
each output has the maximum length, so it is rarely exceeded.
"""

from collections.abc import Sequence
from typing import Any

from regard.serve.api_errors import ApiError
from regard.serve.jobs import PredictHandler
from regard.serve.request_sources import RequestSource
from regard.tasks.values import Constraints

# Required words are matched in Python. Units per continuation and word; characters above which
# the square of the length of a word counts; units per step and banned word.
MATCH_COST, MATCH_CHARS, BAN_COST = 0.1, 30, 2
INSPECT_PASSES = 4  # forward and backward passes per token that an inspection needs


def predict_cost(
    handler: PredictHandler,
    source: RequestSource,
    constraints: Constraints | None = None,
    top: int = 1,
) -> int:
    """Return the cost of a prediction. top: number of prefixes that are completed."""
    search, constraints = handler.search, constraints or Constraints()
    steps = _max_steps(handler, len(source) + 1, constraints)
    beam = max(getattr(search, "beam", 1), handler.nbest)
    per_step = beam * (1 + _match_cost(constraints.require, beam)) + BAN_COST * len(constraints.ban)
    prefix = len(constraints.prefix) if top > 1 else 0  # read once to find the next tokens
    return round(source.cost + prefix + top * steps * per_step)


def inspect_cost(
    handler: PredictHandler, source: RequestSource, target: str | None, max_tokens: int
) -> int:
    """Return the cost of an inspection, whose texts have at most `max_tokens` tokens."""
    length = min(max(source.cost, len(source) + 1), max_tokens)
    steps = _max_steps(handler, length, Constraints()) if target is None else len(target) + 1
    steps = min(steps, max_tokens)
    beam = getattr(handler.search, "beam", 1) if target is None else 1
    return steps * beam + INSPECT_PASSES * (length + steps) * (steps + 1)


def check_cost(cost: int, max_work: int, field: str) -> None:
    """Raise ApiError if a request costs more than the server allows. field: what is too large."""
    if cost > max_work:
        raise ApiError(
            422,
            f"{field}: expected at most {max_work:,} steps x hypotheses per text, found up to "
            f"{cost:,}; use a shorter text, prefix or max_length, fewer required words, a smaller "
            "beam, nbest or top, or raise the limit with regard serve --max-work",
            field,
        )


def _max_steps(handler: PredictHandler, length: int, constraints: Constraints) -> int:
    """Return the maximum number of steps of a search (0: the model predicts labels)."""
    task: Any = handler.model.task
    if hasattr(task, "max_output_length"):
        forced = len(constraints.prefix) + sum(map(len, constraints.require)) + 1
        return max(task.max_output_length(length, handler.search), forced)
    return getattr(handler.search, "max_new_tokens", 0)


def _match_cost(words: Sequence[str], beam: int) -> float:
    """Return the cost per step and hypothesis of matching each continuation with each word."""
    continuations = 2 * beam + len(words)
    return continuations * MATCH_COST * sum(1 + (len(word) / MATCH_CHARS) ** 2 for word in words)
