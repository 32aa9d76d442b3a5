"""How a search chooses among the continuations of its beams.

B sentences, W live beams, C continuations of all of them, N beams to go on with.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from regard.data.tensors.special import EOS, PAD


class Continuations(NamedTuple):
    """Tokens that may come next, (B, C) each: the beam before it, the token, its log
    probability, and the log probability of the whole."""

    parent: Tensor
    token: Tensor
    gained: Tensor
    total: Tensor


class Chosen(NamedTuple):
    """WordIndex among the continuations: goes (B, N), best first; ended (B, E) where `over`.

    What ends is chosen as if it went on: only among the best N. dead: (B, N), places of `goes`
    that there was nothing for.
    """

    goes: Tensor
    ended: Tensor
    over: Tensor
    dead: Tensor


class Choose(Protocol):
    """A way to choose. spare: continuations that are looked at; of each beam, unless `joint`."""

    @property
    def spare(self) -> int: ...

    @property
    def joint(self) -> bool: ...

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Chosen: ...


@dataclass(frozen=True)
class Best:
    """The best N; where one of these ends, the next best comes after it. spare: 2 N."""

    spare: int
    joint = True

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Chosen:
        ends = found.token == EOS
        return alone(found.total, ends) if beam == 1 else best(found.total, ends, beam)


class Diverse:
    """Groups that choose one after the other; what an earlier one chose is worth less to them.

    (Vijayakumar et al. 2018.) `strength` is taken off the rank for each time that a token was
    chosen at this step; log probabilities stay what they are.
    """

    joint = False

    def __init__(self, beam: int, groups: int, strength: float) -> None:
        self.groups, self.strength = groups, strength
        self.spare = 3 * beam

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Chosen:
        size = beam // self.groups
        own = (int(found.parent.max()) + 1) // self.groups  # beams of a group; 0: all begin alike
        parts: list[Chosen] = []
        taken = found.token[:, :0]
        for group in range(self.groups):
            times = (found.token[..., None] == taken[:, None]).sum(-1)
            rank = found.total - self.strength * times
            if own:
                rank = rank.masked_fill(found.parent // own != group, float("-inf"))
            chosen = best(rank, found.token == EOS, size)
            gone = found.token.gather(1, chosen.goes).masked_fill(chosen.dead, PAD)
            taken = torch.cat([taken, gone], 1)
            parts.append(chosen)
        return Chosen(*(torch.cat(part, 1) for part in zip(*parts, strict=True)))


def alone(rank: Tensor, ends: Tensor) -> Chosen:
    """The choice of a beam of one: the best goes on or ends, and nothing comes after it."""
    top = rank.max(1, keepdim=True)
    over, there = ends.gather(1, top.indices), top.values > float("-inf")
    return Chosen(top.indices, top.indices.clone(), over & there, over | ~there)


def best(rank: Tensor, ends: Tensor, beam: int) -> Chosen:
    """The choice by rank (B, C); ends: True where a continuation is the end."""
    top = rank.topk(min(2 * beam, rank.shape[1]))
    over = ends.gather(1, top.indices)
    going = top.values.masked_fill(over, float("-inf"))
    order = going.topk(min(beam, going.shape[1]))
    over = over & (top.values > float("-inf"))
    goes = top.indices.gather(1, order.indices)
    return Chosen(goes, top.indices[:, :beam], over[:, :beam], order.values == float("-inf"))
