"""Batching for prediction: group sources of similar length, within a memory limit."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from regard.core.limits import check_text_length, text_limit
from regard.search.callbacks import StepCallback

MAX_TOKENS = 8192  # default maximum tokens per batch, padding included
MAX_LENGTH = 100_000  # tokens of a source
ROWS = 64  # default sources per batch
MIN_ROWS_PER_THREAD = 32  # with fewer sources per batch, threads only wait for each other
MAX_ROWS, MIN_BATCHES = 256, 16  # for many sources: larger batches, but enough for all cores


def _ignore(*_: Any) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class PredictWork:
    """Batch limits, source indices and callbacks of a prediction.

    max_tokens: maximum tokens per batch, padding included; a longer source is a batch of its own.
    first_index: index of the first source, which seeds random sampling.
    indices: index of each source, if they are not consecutive.
    on_progress: called with the number of new predictions.
    step_callback: called after each step of a search with the indices of the unfinished sources.
    on_predictions: called with the indices of sources and their new predictions, in the thread
    that computed them. If `step_callback` cancels the search, it is called with the predictions
    that are complete.
    """

    max_tokens: int = MAX_TOKENS
    first_index: int = 0
    on_progress: Callable[[int], None] = _ignore
    indices: Sequence[int] | None = None
    step_callback: StepCallback | None = None
    on_predictions: Callable[[Sequence[int], Sequence[Any]], None] = _ignore


DEFAULT_WORK = PredictWork()


def plan(
    lengths: Sequence[int],
    rows: int | None = ROWS,
    max_tokens: int = MAX_TOKENS,
    workers: int = 1,
    uniform: bool = False,
) -> list[list[int]]:
    """Return the batches as lists of source indices.

    rows: maximum sources per batch; None: chosen from the number of sources. max_tokens: maximum
    tokens per batch, ignored if uniform. workers: processes that share the sources. uniform: batch
    only sources of equal length. Otherwise the longest sources come first, so that all workers
    finish at about the same time.
    """
    count = len(lengths)
    size = rows or min(MAX_ROWS, max(ROWS, count // MIN_BATCHES))
    size = max(1, min(size, -(-count // workers)))
    if uniform:
        groups: dict[int, list[int]] = defaultdict(list)
        for index, length in enumerate(lengths):
            groups[length].append(index)
        return [g[at : at + size] for g in groups.values() for at in range(0, len(g), size)]
    batches: list[list[int]] = []
    for index in sorted(range(count), key=lambda index: -lengths[index]):
        full = not batches or len(batches[-1]) == size
        if full or (len(batches[-1]) + 1) * lengths[batches[-1][0]] > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


def check_lengths(lengths: Sequence[int]) -> None:
    """Raise UserError for a source that no model can read in reasonable time and memory."""
    check_text_length("", "source", max(lengths, default=0), text_limit(MAX_LENGTH), "tokens")
