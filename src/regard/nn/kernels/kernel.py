"""The interface of attention kernels, which compute outputs from queries, keys and values.

The past is what a kernel keeps from step to step, such as a key-value cache. The memory is what a
kernel keeps of another sequence for cross-attention. Layers only pass both on.

Shapes: B sentences, k beams per sentence, R = k * B rows, T new positions, S positions attended to,
H heads, G groups of heads that share keys and values, K head width.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.core.options import Options
from regard.data.tensors.padded import Edges
from regard.data.tensors.tree import Tree
from regard.nn.positions import Position


class Supports(NamedTuple):
    """The features of a kernel. A configuration that needs other features is an error."""

    causal: bool = True  # masks the future: decoders, language models
    bidirectional: bool = True  # attends in both directions: encoders
    cross: bool = True  # attends to another sequence
    bias: bool = True  # accepts positions that add a bias to its scores
    input_bias: bool = True  # accepts a bias (B, H, S, S) that is part of the input
    rotary: bool = True  # supports rotary positions: its scores are products q . k
    edges: bool = False  # accepts the edges of a graph


class Shape(NamedTuple):
    """The sizes of a kernel. causal: whether it masks the future, whatever the other masks.

    relations: kinds of the edges of input graphs; 0: edges have no kind.
    """

    width: int
    heads: int
    causal: bool
    relations: int = 0


class AttentionMask(NamedTuple):
    """The mask that all layers share in one forward pass.

    positions: the positional encoding. sentences: B.
    real: (B, S), True for keys that are not padding. None: no padding.
    bias: (B|1, H|1, S, S), part of the input, added to scores. edges: edges of an input graph.
    at: the position of the first query. prepared: the result of `Kernel.prepare`. structure: that
    of `Kernel.structure`.
    """

    positions: Position
    sentences: int
    real: Tensor | None = None
    bias: Tensor | None = None
    edges: Edges | None = None
    at: int = 0
    prepared: Any = None
    structure: Any = None


class Kernel(nn.Module, ABC):
    """Base class of attention kernels.

    reads: the projections of x that the kernel needs. extra: the last of them, which `forward` and
    `weights` get after the others.
    grouped: whether keys and values may have fewer heads than queries. Otherwise the layer repeats
    them.
    traceable: whether `weights` also works step by step, with a past.
    implied: whether the kernel never computes the weights, so that `weights` shows what its result
    amounts to.
    normalized: whether the weights of a query are positive and sum to one.
    sparse: whether a weight is zero exactly if the query cannot attend to that position.
    fuses: whether the fused step (`nn.fused`) computes the same. Not inherited (see `claim`).
    length: the maximum input length. None: unlimited. `advance(step, generator)`: optional, called
    after each update, to sample random features again.
    local: whether a node of a graph only attends to its neighbors.
    """

    reads: tuple[str, ...] = ("query", "key", "value")
    extra: tuple[str, ...] = ()
    grouped: ClassVar[bool] = False
    traceable: ClassVar[bool] = True
    implied: ClassVar[bool] = False
    normalized: ClassVar[bool] = True
    sparse: ClassVar[bool] = False
    fuses: ClassVar[bool] = False
    length: int | None = None
    local: ClassVar[bool] = False

    def prepare(
        self, shared: Tree, rows: int, sentences: int, new: int, like: Tensor
    ) -> tuple[Any, Tree]:
        """Return what all layers share (`mask.prepared`), and the state for the next call.

        Called once per forward pass. shared: the state of the previous call; None at first.
        new: T. like: a tensor with the dtype and device to use.
        """
        return None, None

    def structure(self, edges: Edges | None, real: Tensor) -> Any:
        """Return what all layers need of the edges of a batch (`mask.structure`).

        Called once per forward pass of an encoder. real: (B, S), True unless padding.
        """
        return None

    @abstractmethod
    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tree]:
        """Return the output (R, H, T, K), and the new past.

        q: (R, H, T, K). k, v: (R, G, T, K), where G is H unless the kernel is `grouped`.
        Projections that are not in `reads` are empty. past: None in the first step. If the kernel
        is not causal, past is always None.
        """

    @abstractmethod
    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the attention weights (R, H, T, S) and the values (R, H, S, K).

        Their product is the output of `forward`. S counts all positions so far, in order.
        Slow: for recording and tests.
        """

    def memory(self, k: Tensor, v: Tensor, real: Tensor) -> Tree:
        """Return the memory of another sequence with keys k and values v (B, G, S, K).

        Called once per sentence. real: (B, S), True unless padding.
        """
        raise NotImplementedError

    def attend(self, q: Tensor, memory: Tree, real: Tensor) -> Tensor:
        """Return the output (R, H, T, K) of queries q (R, H, T, K) that attend to the memory."""
        raise NotImplementedError

    def memory_weights(self, q: Tensor, memory: Tree, real: Tensor) -> tuple[Tensor, Tensor]:
        """Return the attention weights (R, H, T, S) of `attend`, and the values (R, H, S, K)."""
        raise NotImplementedError


class KernelOptions(Options):
    """Base class of kernel options.

    exports: the engines that support the kernel. aligns: whether training can read its weights as
    attention to the source.
    """

    supports: ClassVar[Supports] = Supports()
    aligns: ClassVar[bool] = False
    exports: ClassVar[frozenset[str]] = frozenset()
    kind: str

    def build(self, shape: Shape) -> Kernel:
        """Return the kernel of one layer."""
        raise NotImplementedError


def repeat_heads(x: Tensor, heads: int) -> Tensor:
    """Return keys or values (R, G, T, K) as (R, H, T, K): each head serves a group of queries."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def real_keys(k: Tensor, mask: AttentionMask) -> Tensor:
    """Return the mask (R, S) of keys (R, H, S, K) that are not padding."""
    if mask.real is not None:
        return mask.real
    return torch.ones(len(k), k.shape[2], dtype=torch.bool, device=k.device)


def full_precision(x: Tensor) -> Tensor:
    """Return x in float32, or unchanged if it is already in float32 or float64."""
    return x if x.dtype in (torch.float32, torch.float64) else x.float()


def masked_softmax(scores: Tensor, visible: Tensor | None) -> Tensor:
    """Return softmax(scores) over visible entries. A row without visible entries is all zeros."""
    if visible is None:
        return scores.softmax(-1)
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~visible, lowest).softmax(-1).masked_fill(~visible, 0.0)


def check_length(kind: str, length: int, limit: int | None) -> None:
    """Raise UserError if a sequence is longer than a kernel with weights per position supports."""
    if limit is not None and length > limit:
        raise UserError(
            f"sequence of {length:,} positions exceeds the {limit:,} of attention {kind}",
            help=f"shorten the text, or train with a larger `length` of attention {kind}",
        )
