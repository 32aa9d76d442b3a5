"""Callbacks that observe a search after each step, and may cancel it."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from regard.search.hypothesis import Hypothesis


class PartialHypothesis(NamedTuple):
    """An unfinished or finished output. token_logprobs: as in a hypothesis, that of EOS included
    if it is finished; empty if the search keeps none."""

    tokens: Sequence[int]
    token_logprobs: Sequence[float] = ()


Outputs = Callable[[], Sequence[PartialHypothesis]]
FinishedRows = Mapping[int, Sequence[Hypothesis]]  # the results of a search by row


class StepCallback(Protocol):
    """Called after each step with the unfinished rows of the batch.

    outputs: returns the best output so far of each of these rows. Exceptions end the search;
    `SearchCancelled` means that the caller no longer needs its outputs.
    """

    def __call__(self, rows: Sequence[int], outputs: Outputs, /) -> None: ...


class SearchCancelled(Exception):
    """The caller no longer needs the outputs of a search. finished: those completed before."""

    finished: FinishedRows = {}  # noqa: RUF012, replaced and never changed


def notify_step(
    callback: StepCallback | None,
    rows: Sequence[int],
    outputs: Outputs,
    finished: Callable[[], FinishedRows] | None = None,
) -> None:
    """Call the callback after a step. finished: returns the results of the finished rows."""
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
    """Call the callback after a step; tokens[row] and logprobs[row] are those of the row so far."""

    def outputs() -> list[PartialHypothesis]:
        row_logprobs = [()] * len(tokens) if logprobs is None else logprobs
        return [PartialHypothesis(tuple(tokens[row]), tuple(row_logprobs[row])) for row in rows]

    notify_step(callback, rows, outputs, finished)


def remap_rows(callback: StepCallback | None, indices: Sequence[int]) -> StepCallback | None:
    """Return the callback for a search whose row r is indices[r] for the caller."""
    if callback is None:
        return None
    return lambda rows, outputs: callback([indices[row] for row in rows], outputs)
