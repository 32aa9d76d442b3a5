"""Padded tensors and batches: what flows between the parts of a model.

B rows, S source length, T target length, D width, H heads, U different words, L letters.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.data.tensors.special import PAD
from regard.data.tensors.tree import Tree, tree_map


class Edges(NamedTuple):
    """The edges of graphs, sparse. ends: (3, E): row, from, to; kind: (E,), a number for each."""

    ends: Tensor
    kind: Tensor


class Padded(NamedTuple):
    """Rows of different lengths in one tensor.

    data: (B, S) symbols or (B, S, D) vectors; mask: (B, S), True where data is real;
    bias: (B, H, S, S) added to attention scores, or None; edges: of graphs, or None; summary:
    (B, D), an encoder's own view of the whole row, or None.
    """

    data: Tensor
    mask: Tensor
    bias: Tensor | None = None
    edges: Edges | None = None
    summary: Tensor | None = None

    def pooled(self) -> Tensor:
        """One vector a row (B, D): the summary, or else the mean over the real positions."""
        if self.summary is not None:
            return self.summary
        weight = self.mask.unsqueeze(-1).to(self.data.dtype)  # (B, S, 1)
        return (self.data * weight).sum(1) / weight.sum(1).clamp(min=1)


class Batch(NamedTuple):
    """Examples side by side; what a task does not have is None.

    source: what goes in. target: a sequence that comes out; where it has its own length each row
    ends with EOS. labels: one answer a row, (B,) a class or (B, C) numbers. letters: (U, L), the
    different words of the source; `source.data` is then (B, S, 2), the number of the word and
    its place among the letters. weight: (B,) how much each row counts. before: (B,), the symbol
    before the first of each target. carry: what the batch before this one left behind.
    """

    source: Padded | None = None
    target: Padded | None = None
    labels: Tensor | None = None
    letters: Padded | None = None
    weight: Tensor | None = None
    before: Tensor | None = None
    carry: Tree = None

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device."""
        return tree_map(lambda tensor: tensor.to(device), self)

    @property
    def masks(self) -> list[Tensor]:
        """The masks of source and target, as far as they are there."""
        return [side.mask for side in (self.source, self.target) if side is not None]

    @property
    def rows(self) -> int:
        """The number of examples."""
        return len(self.masks[0])


def pad(rows: list[list[int]]) -> Padded:
    """Lists of symbols as one padded tensor."""
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    flat = np.fromiter((symbol for row in rows for symbol in row), np.int64, int(lengths.sum()))
    return pad_flat(flat, np.cumsum(lengths) - lengths, lengths)


def pad_flat(flat: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> Padded:
    """The pieces `flat[start : start + length]` as one padded tensor."""
    steps = np.arange(max(1, int(lengths.max())))
    mask = steps < lengths[:, None]  # (B, S)
    at = np.where(mask, starts[:, None] + steps, 0)
    data = np.where(mask, flat[at], PAD) if len(flat) else np.full(at.shape, PAD)
    return Padded(torch.from_numpy(data.astype(np.int64)), torch.from_numpy(mask))
