"""The door through which a search is followed, step by step, while it goes on."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from regard.search.hypothesis import Hypothesis


class Begun(NamedTuple):
    """An output so far, or one that has ended. token_logprobs: log probabilities, as those of a
    hypothesis: that of EOS is among them where it has ended; empty where a search keeps none."""

    tokens: Sequence[int]
    token_logprobs: Sequence[float] = ()


Outputs = Callable[[], Sequence[Begun]]
Settled = Mapping[int, Sequence[Hypothesis]]  # what a search found, by row


class Follower(Protocol):
    """Is told after each step which rows of the batch go on.

    outputs: makes the best output so far of each of these rows. What a follower raises ends the
    search; `Unwanted` says that nobody waits for its outputs any more.
    """

    def __call__(self, rows: Sequence[int], outputs: Outputs, /) -> None: ...


class Unwanted(Exception):
    """Nobody waits for the outputs of a search any more. settled: those that were there before."""

    settled: Settled = {}  # noqa: RUF012, replaced and never changed


def tell(
    follower: Follower | None,
    rows: Sequence[int],
    outputs: Outputs,
    settled: Callable[[], Settled] | None = None,
) -> None:
    """Tells a step to whoever follows. settled: makes what is found of rows that do not go on."""
    if follower is None or not rows:
        return
    try:
        follower(rows, outputs)
    except Unwanted as error:
        if settled is not None:
            error.settled = settled()
        raise


def tell_rows(
    follower: Follower | None,
    rows: Sequence[int],
    tokens: Sequence[Sequence[int]],
    scores: Sequence[Sequence[float]] | None = None,
    settled: Callable[[], Settled] | None = None,
) -> None:
    """Tells a step after which tokens[row] and scores[row] are those of each row so far."""

    def outputs() -> list[Begun]:
        own = [()] * len(tokens) if scores is None else scores
        return [Begun(tuple(tokens[row]), tuple(own[row])) for row in rows]

    tell(follower, rows, outputs, settled)


def remap_rows(follower: Follower | None, indices: Sequence[int]) -> Follower | None:
    """Return the follower of a search whose row r is indices[r] for the caller."""
    if follower is None:
        return None
    return lambda rows, outputs: follower([indices[row] for row in rows], outputs)
