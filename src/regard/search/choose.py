"""How a search chooses among the continuations of its beams.

B sentences, W live beams, K continuations of each, N beams to go on with.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from regard.data.vocabulary import EOS


class Continuations(NamedTuple):
    """The best symbols after each beam, (B, W, K) each. total: log probability with the symbol."""

    symbol: Tensor
    gained: Tensor
    total: Tensor


class Chosen(NamedTuple):
    """Places in the flat (W*K) continuations: goes (B, N), best first; ended (B, E) where `over`.

    What ends is chosen as if it went on: only among the best N. dead: (B, N), places of `goes`
    that there was nothing for.
    """

    goes: Tensor
    ended: Tensor
    over: Tensor
    dead: Tensor


class Choose(Protocol):
    """A way to choose."""

    spare: int  # continuations of each beam that are looked at

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Chosen: ...


class Best:
    """The best N; where one of these ends, the next best comes after it."""

    def __init__(self, beam: int) -> None:
        self.spare = 2 * beam if beam > 1 else 1

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Chosen:
        return best(found.total.flatten(1), found.symbol.flatten(1) == EOS, beam)


class Diverse:
    """Groups that choose one after the other; what an earlier one chose is worth less to them.

    (Vijayakumar et al. 2018.) `strength` is taken off the rank for each time that a symbol was
    chosen at this step; log probabilities stay what they are.
    """

    def __init__(self, beam: int, groups: int, strength: float) -> None:
        self.groups, self.strength = groups, strength
        self.spare = 3 * beam

    def __call__(self, found: Continuations, beam: int, rows: list[int]) -> Chosen:
        B, W, K = found.symbol.shape
        size = beam // self.groups
        parts: list[Chosen] = []
        taken = found.symbol.new_empty(B, 0)
        for group in range(self.groups):
            a, b = (0, W) if W == 1 else (group * size, (group + 1) * size)
            symbol, total = (x[:, a:b].flatten(1) for x in (found.symbol, found.total))
            times = (symbol[..., None] == taken[:, None]).sum(-1)
            chosen = best(total - self.strength * times, symbol == EOS, size)
            taken = torch.cat([taken, symbol.gather(1, chosen.goes)], 1)
            places = (chosen.goes + a * K, chosen.ended + a * K)
            parts.append(Chosen(*places, chosen.over, chosen.dead))
        return Chosen(*(torch.cat(part, 1) for part in zip(*parts, strict=True)))


def best(rank: Tensor, ends: Tensor, beam: int) -> Chosen:
    """The choice by rank (B, C); ends: True where a continuation is the end."""
    if beam == 1 and rank.shape[1] == 1:
        first = torch.zeros_like(rank, dtype=torch.long)
        return Chosen(first, first, ends & (rank > float("-inf")), ends)
    top = rank.topk(min(2 * beam, rank.shape[1]))
    over = ends.gather(1, top.indices)
    going = top.values.masked_fill(over, float("-inf"))
    order = going.topk(min(beam, going.shape[1]))
    over = over & (top.values > float("-inf"))
    goes = top.indices.gather(1, order.indices)
    return Chosen(goes, top.indices[:, :beam], over[:, :beam], order.values == float("-inf"))
