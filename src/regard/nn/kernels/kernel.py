"""The contract of an inner attention, a kernel: from queries, keys and values to what is found.

A kernel owns its past: what it keeps of earlier positions, and what selecting rows means for it.
The stack around it only hands that through.

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
    """What a kernel can do; what it cannot is refused when the configuration is read."""

    causal: bool = True  # hides the future: decoders, language models
    bidirectional: bool = True  # sees both ways: encoders
    cross: bool = True  # attends to another sequence
    bias: bool = True  # takes numbers that are added to its scores
    rotary: bool = True  # its scores are products q . k, so that both can be rotated
    edges: bool = False  # takes the edges of a graph


class Shape(NamedTuple):
    """What a kernel is built for. causal is said here, once, and never implied by a mask."""

    width: int
    heads: int
    causal: bool


class AttentionMask(NamedTuple):
    """What all layers of a stack share in one pass. real: (B, S), True for keys that are not
    padding, None: all are; bias: (B|1, H|1, S, S), numbers that the input adds to scores; edges: of
    a graph; at: the position of the first query; sentences: B; prepared: by `Kernel.prepare`."""

    positions: Position
    sentences: int
    real: Tensor | None = None
    bias: Tensor | None = None
    edges: Edges | None = None
    at: int = 0
    prepared: Any = None


class Kernel(nn.Module, ABC):
    """The contract. reads: which projections of x it wants; traceable: whether `weights` works for
    steps as well, from what it keeps; fuses: whether the fused step computes what it computes, not
    inherited (`claim`); length: the longest input it takes, None: any."""

    reads: ClassVar[tuple[str, ...]] = ("query", "key", "value")
    traceable: ClassVar[bool] = True
    fuses: ClassVar[bool] = False
    length: int | None = None

    def prepare(
        self, shared: Tree, rows: int, sentences: int, new: int, like: Tensor
    ) -> tuple[Any, Tree]:
        """Once for all layers of a pass: what they share (`mask.prepared`), and its next state.

        shared: that state after the last pass, None before the first; new: T; like: any tensor of
        the numbers wanted.
        """
        return None, None

    @abstractmethod
    def forward(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree
    ) -> tuple[Tensor, Tree]:
        """q, k and v (R, H, T, K) to (R, H, T, K), and the past after it.

        What it does not read is empty. past: None before the first pass; always None where the
        kernel is not causal.
        """

    @abstractmethod
    def weights(
        self, q: Tensor, k: Tensor, v: Tensor, mask: AttentionMask, past: Tree
    ) -> tuple[Tensor, Tensor]:
        """The same as an explicit map (R, H, T, S) and values (R, H, S, K): map @ values is what
        `forward` gives. S counts all positions so far, in order. Slow: for recording and laws."""

    def memory(self, k: Tensor, v: Tensor, real: Tensor) -> Tree:
        """What is kept of another sequence: k and v (B, H, S, K), once a sentence."""
        raise NotImplementedError

    def attend(self, q: Tensor, memory: Tree, real: Tensor) -> Tensor:
        """q (R, H, T, K) to (R, H, T, K), from the memory of B sentences; real: (B, S)."""
        raise NotImplementedError

    def memory_weights(self, q: Tensor, memory: Tree, real: Tensor) -> tuple[Tensor, Tensor]:
        """`attend` as an explicit map (R, H, T, S), and values (R, H, S, K)."""
        raise NotImplementedError

    def advance(self, step: int, generator: torch.Generator) -> None:
        """Called after each update: for features that are redrawn."""


class KernelOptions(Options):
    """What the options of all kernels can do. exports: engines that compute it."""

    supports: ClassVar[Supports] = Supports()
    exports: ClassVar[frozenset[str]] = frozenset()
    kind: str

    def build(self, shape: Shape) -> Kernel:
        """The kernel of one layer."""
        raise NotImplementedError
