"""How sources are predicted in batches: those of similar length together, in bounded memory."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from regard.search.callbacks import StepCallback

TOKENS = 8192  # maximum tokens per batch, padding included
ROWS = 64  # sources per batch
FEW = 32  # sources per batch below which threads only wait for each other
MANY_ROWS, PARTS = 256, 16  # of many sources: more, but enough batches for all cores


def _ignore(*_: Any) -> None:
    """Take what nobody wants to know."""


@dataclass(frozen=True)
class Work:
    """How sources are predicted; no prediction depends on it.

    tokens: maximum tokens per batch, padding included; a longer source is alone. first: the index
    of the first source, if there were others before; samples are drawn by it. numbers: the index
    of each source, if they do not follow each other. done: is told how many more sources are
    predicted. step_callback: is called after each step of a search, with the indices of the
    unfinished sources. answered: is called with predictions as soon as they are made and
    the indices of their sources, in the thread that made them; also if the callback ends the work.
    """

    tokens: int = TOKENS
    first: int = 0
    done: Callable[[int], None] = _ignore
    numbers: Sequence[int] | None = None
    step_callback: StepCallback | None = None
    answered: Callable[[Sequence[int], Sequence[Any]], None] = _ignore


ALL = Work()  # all there is


def rows_together(count: int, threads: int) -> int:
    """Return the sources per batch, of some that arrive together: each thread has its own."""
    return max(FEW, -(-count // threads))


def plan(
    lengths: Sequence[int],
    rows: int | None = ROWS,
    tokens: int = TOKENS,
    workers: int = 1,
    uniform: bool = False,
) -> list[list[int]]:
    """Return the indices of sources, batch by batch.

    rows, tokens: maximum per batch; rows None: by the number of sources. workers: processes that
    share the sources. uniform: only sources of equal length together, in their order; otherwise
    the longest first, so that workers end together.
    """
    count = len(lengths)
    most = rows or min(MANY_ROWS, max(ROWS, count // PARTS))
    most = max(1, min(most, -(-count // workers)))
    if uniform:
        groups: dict[int, list[int]] = defaultdict(list)
        for index, length in enumerate(lengths):
            groups[length].append(index)
        return [g[at : at + most] for g in groups.values() for at in range(0, len(g), most)]
    found: list[list[int]] = []
    for index in sorted(range(count), key=lambda index: -lengths[index]):
        full = not found or len(found[-1]) == most
        if full or (len(found[-1]) + 1) * lengths[found[-1][0]] > tokens:
            found.append([])
        found[-1].append(index)
    return found
