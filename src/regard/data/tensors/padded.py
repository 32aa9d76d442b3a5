"""Padded tensors and batches, which the modules of a model exchange.

A row is one example of a batch. B rows, S source length, T target length, D width, H heads,
U entries of a shared table, E edges, V vocabulary, C classes or target numbers.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from regard.data.tensors.special import BOS, PAD
from regard.data.tensors.tree import Tree, tree_map


class Edges(NamedTuple):
    """Sparse edges of graphs, one graph per row.

    ends: (3, E), the row, start position and end position of each edge. kind: (E,), type ids.
    order: (E,), the edges sorted by row and start position, if known; then `ends` is sorted by row
    and end position.
    """

    ends: Tensor
    kind: Tensor
    order: Tensor | None = None

    def take(self, rows: Tensor, count: int) -> "Edges":
        """Return the edges of the rows with these distinct indices, out of `count` rows."""
        now = torch.full((count,), -1, device=self.ends.device)
        now[rows] = torch.arange(len(rows), device=self.ends.device)
        here = now[self.ends[0]]
        kept = here >= 0
        ends = torch.stack([here, self.ends[1], self.ends[2]])
        return Edges(ends[:, kept], self.kind[kept])

    @classmethod
    def join(cls, graphs: Sequence["Edges"]) -> "Edges":
        """Return the edges of several batches of one row each, as rows of one batch."""
        starts = np.cumsum([0, *(len(graph.kind) for graph in graphs[:-1])]).tolist()
        ends, orders = [], []
        for row, (graph, start) in enumerate(zip(graphs, starts, strict=True)):
            ends.append(torch.cat([torch.full_like(graph.ends[:1], row), graph.ends[1:]]))
            orders += [] if graph.order is None else [graph.order + start]
        order = torch.cat(orders) if len(orders) == len(graphs) else None
        return cls(torch.cat(ends, 1), torch.cat([graph.kind for graph in graphs]), order)

    def copies(self, count: int) -> "Edges":
        """Return the edges of a single row, repeated for `count` equal rows."""
        rows = torch.arange(count, device=self.ends.device).repeat_interleave(len(self.kind))
        ends = torch.cat([rows[None], self.ends[1:].repeat(1, count)])
        return Edges(ends, self.kind.repeat(count))


class SharedRows(NamedTuple):
    """A table (U, L) that the positions of a batch share, such as the characters of words.

    The last value of a position is its index into the table. Index 0 is for padding.
    """

    data: Tensor
    mask: Tensor

    def take(self, data: Tensor) -> tuple[Tensor, "SharedRows"]:
        """Return positions (B, S, n) with new indices, and a table of only the entries they use."""
        indices = data[..., -1]
        used, now = torch.cat([indices.new_zeros(1), indices.flatten()]).unique(return_inverse=True)
        renumbered = torch.cat([data[..., :-1], now[1:].view_as(indices).unsqueeze(-1)], -1)
        return renumbered, SharedRows(self.data[used], self.mask[used])


class Padded(NamedTuple):
    """Rows of different lengths in one tensor.

    data: (B, S) tokens, (B, S, n) integers or (B, S, D) vectors. mask: (B, S), False for padding.
    bias: (B, H or 1, S, S), added to attention scores. edges: the edges of graphs. shared: the
    table that positions index. summary: (B, D), one vector per row if the encoder computes it.
    """

    data: Tensor
    mask: Tensor
    bias: Tensor | None = None
    edges: Edges | None = None
    shared: SharedRows | None = None
    summary: Tensor | None = None

    def pooled(self) -> Tensor:
        """Return one vector per row (B, D): the summary if set, else the mean over positions."""
        if self.summary is not None:
            return self.summary
        weight = self.mask.unsqueeze(-1).to(self.data.dtype)  # (B, S, 1)
        return (self.data * weight).sum(1) / weight.sum(1).clamp(min=1)

    def tokens(self) -> "Padded":
        """Return only the tokens (B, S), without indices into `shared`."""
        return Padded(self.data if self.shared is None else self.data[..., 0], self.mask)

    def take(self, rows: slice) -> "Padded":
        """Return a slice of the rows, with their edges and the shared entries they use."""
        data, shared, edges = self.data[rows], self.shared, self.edges
        if shared is not None:
            data, shared = shared.take(data)
        if edges is not None:
            numbers = torch.arange(len(self.mask), device=self.mask.device)[rows]
            edges = edges.take(numbers, len(self.mask))
        bias, summary = (None if x is None else x[rows] for x in (self.bias, self.summary))
        return Padded(data, self.mask[rows], bias, edges, shared, summary)

    def copies(self, count: int) -> "Padded":
        """Return a single row repeated `count` times, without copying its data."""
        data, mask, bias, summary = (
            None if x is None else x.expand(count, *[-1] * (x.ndim - 1))
            for x in (self.data, self.mask, self.bias, self.summary)
        )
        assert data is not None and mask is not None
        edges = None if self.edges is None else self.edges.copies(count)
        return Padded(data, mask, bias, edges, self.shared, summary)

    def to(self, device: torch.device) -> "Padded":
        """Return the same tensors on another device."""
        found: Padded = tree_map(lambda tensor: tensor.to(device), self)
        return found


class Batch(NamedTuple):
    """A batch of examples; fields that a task does not use are None.

    source: the input. target: the output sequence; in a `PairCorpus`, each row ends with EOS.
    labels: one target per row, (B,) classes or (B, C) numbers.
    weight: (B,) or (B, S), weight of each row, or of each position, in the loss.
    before: (B,), the token before each target.
    carry: the model state after the previous batch. prepared: tensors that the objective added,
    with B as first dimension.
    """

    source: Padded | None = None
    target: Padded | None = None
    labels: Tensor | None = None
    weight: Tensor | None = None
    before: Tensor | None = None
    carry: Tree = None
    prepared: Tree = None

    def to(self, device: torch.device) -> "Batch":
        """Return the same batch on another device."""
        return tree_map(lambda tensor: tensor.to(device), self)

    def take(self, rows: slice) -> "Batch":
        """Return a slice of the rows of every field."""
        source, target = (None if side is None else side.take(rows) for side in self[:2])
        rest = tree_map(lambda tensor: tensor[rows], tuple(self[2:]))
        return Batch(source, target, *rest)

    @property
    def masks(self) -> list[Tensor]:
        """The masks of source and target, if present."""
        return [side.mask for side in (self.source, self.target) if side is not None]

    @property
    def rows(self) -> int:
        """The number of examples."""
        return len(self.masks[0])


class LengthScores(NamedTuple):
    """Scores of the output lengths of each row, EOS included.

    logits: (B, L), -inf for impossible lengths. shortest: (B,), the length of the first class.
    """

    logits: Tensor
    shortest: Tensor


class Outputs(NamedTuple):
    """The outputs of a model for a batch; outputs that a model does not have are None.

    logits: (N, V) for the N target tokens without padding (of a parallel decoder: for its masked
    inputs), (B, S, C) per position, or (B, C) per row. carry: the model state for the next batch.
    lengths: scores of output lengths, by a parallel decoder. frames: logits (B, S, V) per frame,
    with their mask, for CTC. encoded: (B, S), which positions of the encoder are not padding, of an
    encoder-decoder model. transitions: (C + 1, C + 1), CRF scores of label pairs, see
    `nn/crf.py`.
    """

    logits: Tensor
    carry: Tree = None
    lengths: LengthScores | None = None
    frames: Padded | None = None
    transitions: Tensor | None = None
    encoded: Tensor | None = None


def shifted(target: Tensor, before: Tensor | None = None) -> Tensor:
    """Return the decoder inputs (B, T): the target tokens shifted right by one.

    before: (B,), the first input of each row; None: BOS.
    """
    first = torch.full_like(target[:, :1], BOS) if before is None else before[:, None]
    return torch.cat([first, target[:, :-1]], 1)


def pad(rows: list[list[int]]) -> Padded:
    """Return lists of tokens as one padded tensor."""
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    flat = np.fromiter((token for row in rows for token in row), np.int64, int(lengths.sum()))
    return pad_flat(flat, np.cumsum(lengths) - lengths, lengths)


def pad_flat(flat: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> Padded:
    """Return the slices `flat[start : start + length]` as one padded tensor.

    Integers (total,) become int64 (B, S), floats (total, F) become float32 (B, S, F).
    """
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
