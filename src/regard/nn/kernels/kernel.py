"""The interface of attention kernels, which compute outputs from queries, keys and values.

The past is what a kernel keeps from step to step, such as a key-value cache. The memory is what a
kernel keeps of another sequence for cross-attention. Layers only pass both on.

Shapes: B sentences, k beams per sentence, R = k * B rows, T new positions, S positions attended to,
H heads, K head width.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from regard.core.options import Options
from regard.data.tensors.padded import Edges
from regard.data.tensors.tree import Tree
from regard.nn.positions import Position


class Supports(NamedTuple):
    """The features of a kernel. A configuration that needs other features is an error."""

    causal: bool = True  # masks the future: decoders, language models
    bidirectional: bool = True  # attends in both directions: encoders
    cross: bool = True  # attends to another sequence
    bias: bool = True  # accepts a bias that is added to its scores
    rotary: bool = True  # supports rotary positions: its scores are products q . k
    edges: bool = False  # accepts the edges of a graph


class Shape(NamedTuple):
    """The sizes of a kernel. causal: whether it masks the future, whatever the other masks."""

    width: int
    heads: int
    causal: bool


class AttentionMask(NamedTuple):
    """The mask that all layers share in one forward pass.

    positions: the positional encoding. sentences: B.
    real: (B, S), True for keys that are not padding. None: no padding.
    bias: (B|1, H|1, S, S), part of the input, added to scores. edges: edges of an input graph.
    at: the position of the first query. prepared: the result of `Kernel.prepare`.
    """

    positions: Position
    sentences: int
    real: Tensor | None = None
    bias: Tensor | None = None
    edges: Edges | None = None
    at: int = 0
    prepared: Any = None


class Kernel(nn.Module, ABC):
    """Base class of attention kernels.

    reads: the projections of x that the kernel needs.
    traceable: whether `weights` also works step by step, with a past.
    fuses: whether the fused step (`nn.fused`) computes the same. Not inherited (see `claim`).
    length: the maximum input length. None: unlimited.
    """

    reads: ClassVar[tuple[str, ...]] = ("query", "key", "value")
    traceable: ClassVar[bool] = True
    fuses: ClassVar[bool] = False
    length: int | None = None

    def prepare(
        self, shared: Tree, rows: int, sentences: int, new: int, like: Tensor
    ) -> tuple[Any, Tree]:
        """Return what all layers share (`mask.prepared`), and the state for the next call.

        Called once per forward pass. shared: the state of the previous call; None at first.
        new: T. like: a tensor with the dtype and device to use.
        """
        return None, None

    @abstractmethod
    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree
    ) -> tuple[Tensor, Tree]:
        """Return the output (R, H, T, K) for q, k and v (R, H, T, K), and the new past.

        Projections that are not in `reads` are empty. past: None in the first step. If the kernel
        is not causal, past is always None.
        """

    @abstractmethod
    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree
    ) -> tuple[Tensor, Tensor]:
        """Return the attention weights (R, H, T, S) and the values (R, H, S, K).

        Their product is the output of `forward`. S counts all positions so far, in order.
        Slow: for recording and tests.
        """

    def memory(self, k: Tensor, v: Tensor, real: Tensor) -> Tree:
        """Return the memory of another sequence with keys k and values v (B, H, S, K).

        Called once per sentence. real: (B, S), True unless padding.
        """
        raise NotImplementedError

    def attend(self, q: Tensor, memory: Tree, real: Tensor) -> Tensor:
        """Return the output (R, H, T, K) of queries q (R, H, T, K) that attend to the memory."""
        raise NotImplementedError

    def memory_weights(self, q: Tensor, memory: Tree, real: Tensor) -> tuple[Tensor, Tensor]:
        """Return the attention weights (R, H, T, S) of `attend`, and the values (R, H, S, K)."""
        raise NotImplementedError

    def advance(self, step: int, generator: torch.Generator) -> None:
        """Resample random features, if the kernel has any. Called after each update."""


class KernelOptions(Options):
    """Base class of kernel options. exports: the engines that support the kernel."""

    supports: ClassVar[Supports] = Supports()
    exports: ClassVar[frozenset[str]] = frozenset()
    kind: str

    def build(self, shape: Shape) -> Kernel:
        """Return the kernel of one layer."""
        raise NotImplementedError
