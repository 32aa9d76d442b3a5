"""The interface of an attention kernel: from queries, keys and values to outputs.

A kernel owns its past, such as a cache, and defines how rows of it are selected. The stack around
it only passes it on.

B sentences, k beams, R = k * B rows, T new positions, S positions attended to, H heads,
K head width.
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
    """The features of a kernel; a configuration that needs others is an error."""

    causal: bool = True  # masks the future: decoders, language models
    bidirectional: bool = True  # attends in both directions: encoders
    cross: bool = True  # attends to another sequence
    bias: bool = True  # accepts a bias that is added to its scores
    rotary: bool = True  # its scores are products q . k, so that both can be rotated
    edges: bool = False  # accepts the edges of a graph


class Shape(NamedTuple):
    """The sizes of a kernel. causal is set here only, and never implied by a mask."""

    width: int
    heads: int
    causal: bool


class AttentionMask(NamedTuple):
    """The mask that all layers share in one pass. real: (B, S), True for keys that are not
    padding, None: all are; bias: (B|1, H|1, S, S), from the input, added to scores; edges: of a
    graph; at: the position of the first query; sentences: B; prepared: by `Kernel.prepare`."""

    positions: Position
    sentences: int
    real: Tensor | None = None
    bias: Tensor | None = None
    edges: Edges | None = None
    at: int = 0
    prepared: Any = None


class Kernel(nn.Module, ABC):
    """The interface. reads: the projections of x that it needs; traceable: whether `weights` also
    works step by step, from its past; fuses: whether the fused step computes the same, not
    inherited (`claim`); length: the maximum input length, None: any."""

    reads: ClassVar[tuple[str, ...]] = ("query", "key", "value")
    traceable: ClassVar[bool] = True
    fuses: ClassVar[bool] = False
    length: int | None = None

    def prepare(
        self, shared: Tree, rows: int, sentences: int, new: int, like: Tensor
    ) -> tuple[Any, Tree]:
        """Return, once per pass, what all layers share (`mask.prepared`), and its next state.

        shared: that state after the last pass, None before the first; new: T; like: a tensor with
        the dtype and device to use.
        """
        return None, None

    @abstractmethod
    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree
    ) -> tuple[Tensor, Tree]:
        """Return the output (R, H, T, K) for q, k and v (R, H, T, K), and the new past.

        Projections that it does not read are empty. past: None before the first pass; always None
        if the kernel is not causal.
        """

    @abstractmethod
    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree
    ) -> tuple[Tensor, Tensor]:
        """Return the attention (R, H, T, S) and values (R, H, S, K) whose product is the output of
        `forward`. S counts all positions so far, in order. Slow: for recording and tests."""

    def memory(self, k: Tensor, v: Tensor, real: Tensor) -> Tree:
        """Return the memory of another sequence with k and v (B, H, S, K), once per sentence."""
        raise NotImplementedError

    def attend(self, q: Tensor, memory: Tree, real: Tensor) -> Tensor:
        """Return the output (R, H, T, K) for q, from the memory of B sentences; real: (B, S)."""
        raise NotImplementedError

    def memory_weights(self, q: Tensor, memory: Tree, real: Tensor) -> tuple[Tensor, Tensor]:
        """Return the attention (R, H, T, S) of `attend`, and the values (R, H, S, K)."""
        raise NotImplementedError

    def advance(self, step: int, generator: torch.Generator) -> None:
        """Called after each update, for random features that are sampled again."""


class KernelOptions(Options):
    """Base class of kernel options. exports: engines that support it."""

    supports: ClassVar[Supports] = Supports()
    exports: ClassVar[frozenset[str]] = frozenset()
    kind: str

    def build(self, shape: Shape) -> Kernel:
        """Return the kernel of one layer."""
        raise NotImplementedError
