"""The contract of a frontend: what an input gives becomes Padded vectors (B, S, D).

B rows, S length, D width, V vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.options import Options
from regard.data.tensors.padded import Padded
from regard.data.tensors.special import SPECIALS, UNK
from regard.inputs.input import InputShape
from regard.nn.capture_hooks import record_input
from regard.nn.dropout import thread_generator
from regard.nn.fused import EMPTY, FusedTable
from regard.nn.int8 import Int8Embedding, Weights


class Frontend(nn.Module, ABC):
    """The contract. width: D, the size of the vectors it gives; table: its embedding of tokens,
    where it has one, which an output layer may be tied to."""

    width: int
    table: "Embedding | None" = None

    def lookup(self) -> nn.Module | None:
        """The embedding of tokens, if looking them up is all that it does in eval mode."""
        return None

    @abstractmethod
    def forward(self, source: Padded) -> Padded:
        """(B, S, D) vectors; mask, bias and edges go along, and the length may become shorter."""


class FrontendOptions(Options):
    """What the options of all frontends can do. reads: the kind of input; carries: what it gives
    beside vectors, of `bias` and `edges`: an encoder that cannot use that is refused; exports:
    engines that compute it."""

    exports: ClassVar[frozenset[str]] = frozenset()
    reads: ClassVar[str]
    carries: ClassVar[frozenset[str]] = frozenset()
    kind: str

    @property
    def spelled(self) -> bool:
        """Whether it reads words by their characters, too."""
        return False

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> Frontend:
        """The frontend of an encoder that reads vectors of this width.

        scale: what embeddings are multiplied by; dropout: the encoder's; direct: whether the
        encoder takes vectors of any width as they are.
        """
        raise NotImplementedError


class Embedding(nn.Module):
    """Tokens to vectors, scaled; begins with variance 1 / D before the scale."""

    def __init__(self, size: int, width: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, width) * width**-0.5)
        self.scale = scale

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) to (B, T, D)."""
        return record_input(self, F.embedding(tokens, self.weight) * self.scale)

    def fast(self) -> Callable[[Tensor], Tensor]:
        """The same without what modules do around it."""
        weight, scale = self.weight.detach(), self.scale
        return lambda tokens: F.embedding(tokens, weight) * scale

    def fused(self) -> FusedTable:
        """Its numbers for the fused step."""
        return FusedTable(self.weight.detach(), EMPTY, self.scale)

    def int8(self, weights: Weights) -> Int8Embedding:
        """The same with int8 weights."""
        return Int8Embedding(weights.matrix(self.weight), self.scale)


def unk_dropout(tokens: Tensor, share: float) -> Tensor:
    """The tokens with a random share of them turned into UNK."""
    if not share:
        return tokens
    drop = torch.rand(tokens.shape, device=tokens.device, generator=thread_generator()) < share
    return tokens.masked_fill(drop & (tokens >= len(SPECIALS)), UNK)
