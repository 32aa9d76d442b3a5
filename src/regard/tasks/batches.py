"""Sources of like length together, so that little is padded and memory is bounded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from regard.search.callbacks import Follower

TOKENS = 8192  # symbols of a batch, padding among them


def _nobody(count: int) -> None:
    """Nobody wants to know how far it is."""


def _nobody_yet(places: Sequence[int], answers: Sequence[Any]) -> None:
    """Nobody wants answers before all are there."""


@dataclass(frozen=True)
class Work:
    """How sources are answered.

    tokens: symbols of a batch at most, padding among them; a longer source is alone. No answer
    depends on it. first: the number of the first source, where there were others before; samples
    are drawn by it. numbers: of each source, where they do not follow each other. done: is told
    how many more sources are answered. follower: is told of each step of a search, with the places
    of the sources that go on. answered: is told of answers as they are there, with the places of
    their sources, in the thread that found them; where the follower ends the work, of those too
    that were there before.
    """

    tokens: int = TOKENS
    first: int = 0
    done: Callable[[int], None] = _nobody
    numbers: Sequence[int] | None = None
    follower: Follower | None = None
    answered: Callable[[Sequence[int], Sequence[Any]], None] = _nobody_yet

    def numbered(self, count: int) -> Sequence[int]:
        """The numbers of so many sources."""
        return range(self.first, self.first + count) if self.numbers is None else self.numbers


ALL = Work()  # all there is


def batches(lengths: Sequence[int], batch_size: int, tokens: int) -> list[list[int]]:
    """The places of sources, at most so many, and so many symbols with padding, at a time.

    The longest come first, so that threads end together.
    """
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    found: list[list[int]] = []
    for place in order:
        full = not found or len(found[-1]) == batch_size
        if full or (len(found[-1]) + 1) * lengths[found[-1][0]] > tokens:
            found.append([])
        found[-1].append(place)
    return found
