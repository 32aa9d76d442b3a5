"""The interface of frontends, which turn encoded sources into vectors (B, S, D).

B rows (examples of the batch), S or T length, D width.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.data_stats import DataStats
from regard.core.options import Options
from regard.data.tensors.padded import Padded
from regard.data.tensors.special import SPECIALS, UNK
from regard.inputs.input import InputShape
from regard.nn.capture_hooks import record_input
from regard.nn.dropout import thread_generator
from regard.nn.fused import EMPTY, FusedTable
from regard.nn.int8 import Int8Embedding, Weights


class Frontend(nn.Module, ABC):
    """The interface of frontends.

    width: width D of the output vectors.
    table: token embedding, if any, to which an output layer may be tied.
    one_shape: whether all sources have one shape and are read fast, so that predictions can be
    computed for a fixed number of rows.
    grid: height and width of the images (B, H, W, D) that it returns instead of (B, S, D).
    relations: kinds of the edges that it passes on; 0: edges have no kind.
    stride: positions of the source per vector.
    """

    one_shape: ClassVar[bool] = False
    width: int
    grid: tuple[int, int] = (0, 0)
    relations: int = 0
    stride: int = 1
    table: "Embedding | None" = None

    def lookup(self) -> nn.Module | None:
        """Return the token embedding if the frontend does nothing else in eval mode, or None."""
        return None

    @abstractmethod
    def forward(self, source: Padded) -> Padded:
        """Return the vectors (B, S, D) with mask, bias and edges.

        S may be shorter than the length of the source.
        """

    def max_vectors(self, length: int) -> int:
        """Return the maximum S for a source of this length, in training and in prediction."""
        return length


class FrontendOptions(Options):
    """Base class of frontend options.

    exports: inference engines that support the frontend.
    reads: kind of input.
    carries: outputs besides vectors (`bias`, `edges`) or instead of them (`grid`, or `nodes`:
    vectors without order), which the encoder must support.
    """

    exports: ClassVar[frozenset[str]] = frozenset()
    reads: ClassVar[str]
    carries: ClassVar[frozenset[str]] = frozenset()
    kind: str

    def positions(self, stats: DataStats) -> int:
        """Return about how many positions the encoder reads for each position of a source."""
        return 1

    def reduced(self, lengths: np.ndarray) -> np.ndarray:
        """Return how many vectors the encoder reads for sources of these lengths (N,)."""
        return lengths

    @classmethod
    def suits(cls, uses: frozenset[str], direct: bool) -> bool:
        """Return whether this is a default for encoders. uses, direct: as in `EncoderOptions`."""
        return True

    @property
    def spelled(self) -> bool:
        """Return whether the frontend also reads the characters of words."""
        return False

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> Frontend:
        """Return the frontend for an encoder with inputs of this width.

        scale: factor that multiplies embeddings. dropout: dropout rate of the encoder. direct:
        whether the encoder accepts any width, so that input vectors need no projection.
        """
        raise NotImplementedError


class Embedding(nn.Module):
    """A token embedding multiplied by `scale`. The weights are initialized with variance 1 / D."""

    def __init__(self, size: int, width: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, width) * width**-0.5)
        self.scale = scale

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vectors (B, T, D) of tokens (B, T)."""
        return record_input(self, F.embedding(tokens, self.weight) * self.scale)

    def fast(self) -> Callable[[Tensor], Tensor]:
        """Return a function with the same result but less overhead. Weights must not change."""
        weight, scale = self.weight.detach(), self.scale
        return lambda tokens: F.embedding(tokens, weight) * scale

    def fused(self) -> FusedTable:
        """Return the weights for the fused Transformer (`nn.fused`)."""
        return FusedTable(self.weight.detach(), EMPTY, self.scale)

    def int8(self, weights: Weights) -> Int8Embedding:
        """Return the same embedding with int8 weights."""
        return Int8Embedding(weights.matrix(self.weight), self.scale)


def unk_dropout(tokens: Tensor, p: float) -> Tensor:
    """Replace a random fraction p of the tokens by UNK, except special tokens."""
    if not p:
        return tokens
    drop = torch.rand(tokens.shape, device=tokens.device, generator=thread_generator()) < p
    return tokens.masked_fill(drop & (tokens >= len(SPECIALS)), UNK)
