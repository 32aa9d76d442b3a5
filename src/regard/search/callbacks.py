"""Callbacks that observe a search after each step, and may cancel it."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from regard.search.hypothesis import Hypothesis


class PartialHypothesis(NamedTuple):
    """The output for a row so far, finished or not.

    token_logprobs: log probability of each token, and of EOS if the output is finished. Empty if
    the search does not keep log probabilities.
    """

    tokens: Sequence[int]
    token_logprobs: Sequence[float] = ()


Outputs = Callable[[], Sequence[PartialHypothesis]]
FinishedRows = Mapping[int, Sequence[Hypothesis]]  # hypotheses of each finished row


class StepCallback(Protocol):
    """A function that the search calls after each step.

    rows: batch indices of the unfinished rows. outputs: returns the best output so far of each of
    these rows. An exception ends the search. The callback raises `SearchCancelled` if the caller
    no longer needs the outputs.
    """

    def __call__(self, rows: Sequence[int], outputs: Outputs, /) -> None: ...


class SearchCancelled(Exception):
    """An exception that cancels a search. finished: hypotheses of the rows finished before."""

    finished: FinishedRows = {}  # noqa: RUF012, replaced but never mutated


def notify_step(
    callback: StepCallback | None,
    rows: Sequence[int],
    outputs: Outputs,
    finished: Callable[[], FinishedRows] | None = None,
) -> None:
    """Call the callback after a step.

    If it raises `SearchCancelled`, store the result of `finished`, the hypotheses of the finished
    rows, in the exception.
    """
    if callback is None or not rows:
        return
    try:
        callback(rows, outputs)
    except SearchCancelled as error:
        if finished is not None:
            error.finished = finished()
        raise


def notify_rows(
    callback: StepCallback | None,
    rows: Sequence[int],
    tokens: Sequence[Sequence[int]],
    logprobs: Sequence[Sequence[float]] | None = None,
    finished: Callable[[], FinishedRows] | None = None,
) -> None:
    """Call the callback after a step, with the output tokens[row], logprobs[row] of each row."""

    def outputs() -> list[PartialHypothesis]:
        row_logprobs = [()] * len(tokens) if logprobs is None else logprobs
        return [PartialHypothesis(tuple(tokens[row]), tuple(row_logprobs[row])) for row in rows]

    notify_step(callback, rows, outputs, finished)


def remap_rows(callback: StepCallback | None, indices: Sequence[int]) -> StepCallback | None:
    """Return a callback that replaces each row r by indices[r] and then calls `callback`."""
    if callback is None:
        return None
    return lambda rows, outputs: callback([indices[row] for row in rows], outputs)
