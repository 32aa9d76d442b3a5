"""Padded tensors and batches: what flows between the parts of a model.

B rows, S source length, T target length, D width, H heads, U rows that others share, E edges.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.data.tensors.special import BOS, PAD
from regard.data.tensors.tree import Tree, tree_map


class Edges(NamedTuple):
    """The edges of graphs, sparse. ends: (3, E): row, from, to; kind: (E,), a number for each."""

    ends: Tensor
    kind: Tensor

    def take(self, rows: Tensor, count: int) -> "Edges":
        """The edges of these of `count` rows, each taken at most once."""
        now = torch.full((count,), -1, device=self.ends.device)
        now[rows] = torch.arange(len(rows), device=self.ends.device)
        here = now[self.ends[0]]
        kept = here >= 0
        ends = torch.stack([here, self.ends[1], self.ends[2]])
        return Edges(ends[:, kept], self.kind[kept])

    def copies(self, count: int) -> "Edges":
        """The edges of a single row, for `count` rows alike."""
        rows = torch.arange(count, device=self.ends.device).repeat_interleave(len(self.kind))
        ends = torch.cat([rows[None], self.ends[1:].repeat(1, count)])
        return Edges(ends, self.kind.repeat(count))


class SharedRows(NamedTuple):
    """Rows (U, L) that positions refer to by their number, such as the letters of words.

    In what refers to them the number is the last value of each position. The first row is for
    padding.
    """

    data: Tensor
    mask: Tensor

    def take(self, data: Tensor) -> tuple[Tensor, "SharedRows"]:
        """Positions (B, S, n) with new numbers, and the rows that they refer to alone."""
        places = data[..., -1]
        used, now = torch.cat([places.new_zeros(1), places.flatten()]).unique(return_inverse=True)
        renumbered = torch.cat([data[..., :-1], now[1:].view_as(places).unsqueeze(-1)], -1)
        return renumbered, SharedRows(self.data[used], self.mask[used])


class Padded(NamedTuple):
    """Rows of different lengths in one tensor.

    data: (B, S) tokens, (B, S, n) whole numbers or (B, S, D) vectors; mask: (B, S), True where
    data is real; bias: (B, H|1, S, S) added to attention scores; edges: of graphs; shared: what
    rows share; summary: (B, D), an encoder's own view of the whole row. What is not there is None.
    """

    data: Tensor
    mask: Tensor
    bias: Tensor | None = None
    edges: Edges | None = None
    shared: SharedRows | None = None
    summary: Tensor | None = None

    def pooled(self) -> Tensor:
        """One vector a row (B, D): the summary, or else the mean over the real positions."""
        if self.summary is not None:
            return self.summary
        weight = self.mask.unsqueeze(-1).to(self.data.dtype)  # (B, S, 1)
        return (self.data * weight).sum(1) / weight.sum(1).clamp(min=1)

    def tokens(self) -> "Padded":
        """The tokens (B, S) alone, where positions refer to shared rows as well."""
        return Padded(self.data if self.shared is None else self.data[..., 0], self.mask)

    def take(self, rows: slice) -> "Padded":
        """These rows, with what of edges and shared rows is theirs."""
        data, shared, edges = self.data[rows], self.shared, self.edges
        if shared is not None:
            data, shared = shared.take(data)
        if edges is not None:
            numbers = torch.arange(len(self.mask), device=self.mask.device)[rows]
            edges = edges.take(numbers, len(self.mask))
        bias, summary = (None if x is None else x[rows] for x in (self.bias, self.summary))
        return Padded(data, self.mask[rows], bias, edges, shared, summary)

    def copies(self, count: int) -> "Padded":
        """A single row as `count` rows alike, without copying its data."""
        data, mask, bias, summary = (
            None if x is None else x.expand(count, *[-1] * (x.ndim - 1))
            for x in (self.data, self.mask, self.bias, self.summary)
        )
        assert data is not None and mask is not None
        edges = None if self.edges is None else self.edges.copies(count)
        return Padded(data, mask, bias, edges, self.shared, summary)

    def to(self, device: torch.device) -> "Padded":
        """The same on another device."""
        found: Padded = tree_map(lambda tensor: tensor.to(device), self)
        return found


class Batch(NamedTuple):
    """Examples side by side; what a task does not have is None.

    source: what goes in. target: a sequence that comes out; where it has its own length each row
    ends with EOS. labels: one answer a row, (B,) a class or (B, C) numbers. weight: (B,) how much
    each row counts. before: (B,), the token before the first of each target. carry: what the
    batch before this one left behind. prepared: what the objective added, tensors with rows first.
    """

    source: Padded | None = None
    target: Padded | None = None
    labels: Tensor | None = None
    weight: Tensor | None = None
    before: Tensor | None = None
    carry: Tree = None
    prepared: Tree = None

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device."""
        return tree_map(lambda tensor: tensor.to(device), self)

    def take(self, rows: slice) -> "Batch":
        """These rows of everything."""
        source, target = (None if side is None else side.take(rows) for side in self[:2])
        rest = tree_map(lambda tensor: tensor[rows], tuple(self[2:]))
        return Batch(source, target, *rest)

    @property
    def masks(self) -> list[Tensor]:
        """The masks of source and target, as far as they are there."""
        return [side.mask for side in (self.source, self.target) if side is not None]

    @property
    def rows(self) -> int:
        """The number of examples."""
        return len(self.masks[0])


class Outputs(NamedTuple):
    """What a model gives for a batch; what it does not have is None.

    logits: (N, V) of the real target tokens row by row, (B, S, C) of positions or (B, C) of rows.
    carry: what the next batch continues from. lengths: (B, L), of a decoder that fills a target at
    once. frames: (B, S, V), of a head on the encoder. transitions: (C + 1, C + 1), the score of
    each label after each other, if labels depend on each other.
    """

    logits: Tensor
    carry: Tree = None
    lengths: Tensor | None = None
    frames: Tensor | None = None
    transitions: Tensor | None = None


def shifted(target: Tensor, before: Tensor | None = None) -> Tensor:
    """What a decoder reads to predict a target (B, T): its tokens one position later, after BOS or
    after the tokens `before` (B,)."""
    first = torch.full_like(target[:, :1], BOS) if before is None else before[:, None]
    return torch.cat([first, target[:, :-1]], 1)


def pad(rows: list[list[int]]) -> Padded:
    """Lists of tokens as one padded tensor."""
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    flat = np.fromiter((token for row in rows for token in row), np.int64, int(lengths.sum()))
    return pad_flat(flat, np.cumsum(lengths) - lengths, lengths)


def pad_flat(flat: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> Padded:
    """The pieces `flat[start : start + length]` as one padded tensor: of whole numbers int64, of
    floats (total, F) float32."""
    steps = np.arange(max(1, int(lengths.max())))
    mask = steps < lengths[:, None]  # (B, S)
    at = np.where(mask, starts[:, None] + steps, 0)
    if np.issubdtype(flat.dtype, np.integer):
        data = np.where(mask, flat[at], PAD) if len(flat) else np.full(at.shape, PAD)
        return Padded(torch.from_numpy(data.astype(np.int64)), torch.from_numpy(mask))
    shape = (*at.shape, *flat.shape[1:])
    found = flat[at] if len(flat) else np.zeros(shape)  # (B, S, F)
    found = np.where(mask.reshape(*mask.shape, *[1] * (found.ndim - 2)), found, 0)
    return Padded(torch.from_numpy(found.astype(np.float32)), torch.from_numpy(mask))
