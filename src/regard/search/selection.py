"""Selection of the next beams among the continuations of the current ones.

B sentences, W live beams, C continuations of all of them, N next beams.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from regard.data.tensors.special import EOS, PAD


class Continuations(NamedTuple):
    """Candidate next tokens, (B, C) each: the parent beam, the token, its log probability, and
    the log probability of the whole output."""

    parent: Tensor
    token: Tensor
    logprob: Tensor
    total: Tensor


class Selection(NamedTuple):
    """Indices of continuations: kept (B, N), best first; finished (B, E) if `is_finished`.

    An output can finish only if it is among the best N. is_empty: (B, N), entries of `kept`
    without a continuation.
    """

    kept: Tensor
    finished: Tensor
    is_finished: Tensor
    is_empty: Tensor


class Selector(Protocol):
    """Selects continuations. num_candidates: continuations to consider, per beam unless `joint`."""

    @property
    def num_candidates(self) -> int: ...

    @property
    def joint(self) -> bool: ...

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Selection: ...


@dataclass(frozen=True)
class TopSelector:
    """The best N; if one of them finishes, the next best takes its slot. num_candidates: 2 N."""

    num_candidates: int
    joint = True

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Selection:
        is_eos = found.token == EOS
        if beam == 1:
            return select_one(found.total, is_eos)
        return select_best(found.total, is_eos, beam)


class DiverseSelector:
    """Groups that select one after the other (Vijayakumar et al. 2018).

    `penalty` is subtracted from the rank of a token for each time that an earlier group selected
    it at this step. Log probabilities do not change.
    """

    joint = False

    def __init__(self, beam: int, groups: int, penalty: float) -> None:
        self.groups, self.penalty = groups, penalty
        self.num_candidates = 3 * beam

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Selection:
        size = beam // self.groups
        group_size = (int(found.parent.max()) + 1) // self.groups  # 0: all start from one beam
        parts: list[Selection] = []
        selected = found.token[:, :0]
        for group in range(self.groups):
            times = (found.token[..., None] == selected[:, None]).sum(-1)
            rank = found.total - self.penalty * times
            if group_size:
                rank = rank.masked_fill(found.parent // group_size != group, float("-inf"))
            part = select_best(rank, found.token == EOS, size)
            tokens = found.token.gather(1, part.kept).masked_fill(part.is_empty, PAD)
            selected = torch.cat([selected, tokens], 1)
            parts.append(part)
        return Selection(*(torch.cat(part, 1) for part in zip(*parts, strict=True)))


def select_one(rank: Tensor, is_eos: Tensor) -> Selection:
    """Return the selection of a beam of one: the best continuation is kept or finishes."""
    top = rank.max(1, keepdim=True)
    is_finished, is_possible = is_eos.gather(1, top.indices), top.values > float("-inf")
    return Selection(
        top.indices,
        top.indices.clone(),
        is_finished & is_possible,
        is_finished | ~is_possible,
    )


def select_best(rank: Tensor, is_eos: Tensor, beam: int) -> Selection:
    """Return the selection by rank (B, C); is_eos: whether a continuation is EOS."""
    top = rank.topk(min(2 * beam, rank.shape[1]))
    is_finished = is_eos.gather(1, top.indices)
    unfinished = top.values.masked_fill(is_finished, float("-inf"))
    order = unfinished.topk(min(beam, unfinished.shape[1]))
    is_finished = is_finished & (top.values > float("-inf"))
    return Selection(
        top.indices.gather(1, order.indices),
        top.indices[:, :beam],
        is_finished[:, :beam],
        order.values == float("-inf"),
    )
