"""Selection of the next beams from the continuations of the live beams.

B sentences. Per sentence: W live beams, C continuations, N next beams, E that may finish.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from regard.data.tensors.special import EOS, PAD


class Continuations(NamedTuple):
    """Continuations of beams by one token, with fields of shape (B, C).

    parent: index of the beam. token: the next token. logprob: log probability of the token.
    total: log probability of the beam and the token.
    """

    parent: Tensor
    token: Tensor
    logprob: Tensor
    total: Tensor


class Selection(NamedTuple):
    """The selected continuations, as indices.

    kept: the next beams (B, N), best first. is_empty: which entries of `kept` are unused (B, N).
    finished: the finished hypotheses (B, E). is_finished: which entries of `finished` are used.
    A hypothesis can finish only if it is among the best N.
    """

    kept: Tensor
    finished: Tensor
    is_finished: Tensor
    is_empty: Tensor


class Selector(Protocol):
    """The interface of selectors, which select the next beams.

    num_candidates: continuations to consider, per sentence if `joint`, otherwise per beam.
    """

    @property
    def num_candidates(self) -> int: ...

    @property
    def joint(self) -> bool: ...

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Selection: ...


@dataclass(frozen=True)
class TopSelector:
    """A selector of the best N continuations. num_candidates: 2 N.

    If one of them finishes, the next best continuation takes its slot.
    """

    num_candidates: int
    joint = True

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Selection:
        is_eos = found.token == EOS
        if beam == 1:
            return select_one(found.total, is_eos)
        return select_best(found.total, is_eos, beam)


class DiverseSelector:
    """A selector for diverse beam search (Vijayakumar et al. 2018).

    Groups of beams select one after the other. The rank of a token is its total log probability,
    minus `penalty` for each time that an earlier group selected the token at this step.
    """

    joint = False

    def __init__(self, beam: int, groups: int, penalty: float) -> None:
        self.groups, self.penalty = groups, penalty
        self.num_candidates = 3 * beam

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Selection:
        size = beam // self.groups
        group_size = (int(found.parent.max()) + 1) // self.groups  # 0: the first step has one beam
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
    """Return the selection for beam size 1: the best continuation is kept or finishes."""
    top = rank.max(1, keepdim=True)
    is_finished, is_possible = is_eos.gather(1, top.indices), top.values > float("-inf")
    return Selection(
        top.indices,
        top.indices.clone(),
        is_finished & is_possible,
        is_finished | ~is_possible,
    )


def select_best(rank: Tensor, is_eos: Tensor, beam: int) -> Selection:
    """Return the best continuations by rank (B, C). is_eos: which of them are EOS (B, C)."""
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
