"""Location-aware attention of a recurrent decoder: the scores also see the previous weights.

The memory is the encoder output. Shapes: B sentences, k beams per sentence, R = k * B rows,
S source length, T target length, D width of the decoder, C maps of earlier weights, F filters.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import fold
from regard.data.tensors.tree import Tree
from regard.nn.attention_scores import AdditiveScore, ScoreOptions


class LocationScore(AdditiveScore):
    """Location-aware score v . tanh(W h + U m + V f) (Chorowski et al. 2015).

    f = F * a: filters over the weights a of the previous token and, if `cumulative`, over the sum
    of the weights of all earlier tokens (Shen et al. 2018, 2.2). Before the first token, all weight
    is at the first position. Padding has weight 0, as have positions outside the source.
    """

    def __init__(
        self, width: int, memory_width: int, filters: int, window: int, cumulative: bool
    ) -> None:
        super().__init__(width, memory_width)
        maps = 1 + cumulative
        self.convolve = nn.Conv1d(maps, filters, 2 * window + 1, padding=window, bias=False)
        self.place = nn.Linear(filters, width, bias=False)

    def attend(self, h: Tensor, memory: Padded, keys: Tensor, past: Tree) -> tuple[Tensor, Tree]:
        """Return the weights (B, k*T, S) of states h (R, T, D), and the maps (R, C, S) of the last.

        The maps are the weights of the previous token and, if `cumulative`, the sum of all.
        """
        B = len(keys)
        query = self.query(h)  # (R, T, D)
        maps = self._first(h, keys) if past is None else past
        found = []
        for t in range(h.shape[1]):
            weights = self._step(query[:, t : t + 1], memory, keys, maps)  # (B, k, S)
            row = weights.flatten(0, 1).unsqueeze(1)  # (R, 1, S)
            found.append(row)
            maps = row if maps.shape[1] == 1 else torch.cat([row, maps[:, 1:] + row], 1)
        return fold(torch.cat(found, 1), B), maps

    def _first(self, h: Tensor, keys: Tensor) -> Tensor:
        """Return the maps (R, C, S) before the first token."""
        maps = h.new_zeros(len(h), self.convolve.in_channels, keys.shape[1])
        maps[:, 0, 0] = 1.0
        return maps

    def _step(self, query: Tensor, memory: Padded, keys: Tensor, maps: Tensor) -> Tensor:
        """Return the weights (B, k, S) of one token. query: (R, 1, D). maps: (R, C, S)."""
        B = len(keys)
        located = self.place(self.convolve(maps).transpose(1, 2))  # (R, S, D)
        mixed = fold(query, B).unsqueeze(2) + keys.unsqueeze(1) + located.unflatten(0, (B, -1))
        scores = self.weigh(torch.tanh(mixed)).squeeze(-1)  # (B, k, S)
        return scores.masked_fill(~memory.mask.unsqueeze(1), float("-inf")).softmax(-1)


class Location(ScoreOptions):
    """Additive score that also sees where the previous token attended: for long sources."""

    kind: Literal["location"] = "location"
    filters: int = Field(8, gt=0, description="filters over the previous weights")
    window: int = Field(10, gt=0, description="positions that a filter reads on each side")
    cumulative: bool = Field(
        False, description="also read the sum of the weights of all earlier tokens"
    )

    def build(self, width: int, memory_width: int) -> LocationScore:
        return LocationScore(width, memory_width, self.filters, self.window, self.cumulative)
