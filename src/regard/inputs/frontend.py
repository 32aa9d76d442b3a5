"""The interface of frontends: encoded inputs to Padded vectors (B, S, D).

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
    """The interface. width: D, of its output; table: its token embedding, if any, which an output
    layer may be tied to."""

    width: int
    table: "Embedding | None" = None

    def lookup(self) -> nn.Module | None:
        """Return the token embedding if the frontend is only a lookup in eval mode."""
        return None

    @abstractmethod
    def forward(self, source: Padded) -> Padded:
        """Return (B, S, D) vectors with mask, bias and edges; the length may become shorter."""


class FrontendOptions(Options):
    """The options of a frontend.

    reads: the kind of input; carries: outputs besides vectors (`bias`, `edges`), which the encoder
    must support; exports: engines that support it.
    """

    exports: ClassVar[frozenset[str]] = frozenset()
    reads: ClassVar[str]
    carries: ClassVar[frozenset[str]] = frozenset()
    kind: str

    @property
    def spelled(self) -> bool:
        """Whether it also reads the characters of words."""
        return False

    def build(
        self, shape: InputShape, width: int, scale: float, dropout: float, direct: bool
    ) -> Frontend:
        """Return the frontend of an encoder that reads vectors of this width.

        scale: factor of embeddings; dropout: the encoder's; direct: whether the encoder accepts
        vectors of any width.
        """
        raise NotImplementedError


class Embedding(nn.Module):
    """Token embedding with a scale; initialized with variance 1 / D before the scale."""

    def __init__(self, size: int, width: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, width) * width**-0.5)
        self.scale = scale

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (B, T) to (B, T, D)."""
        return record_input(self, F.embedding(tokens, self.weight) * self.scale)

    def fast(self) -> Callable[[Tensor], Tensor]:
        """Return the same as a plain function."""
        weight, scale = self.weight.detach(), self.scale
        return lambda tokens: F.embedding(tokens, weight) * scale

    def fused(self) -> FusedTable:
        """Return its weights for the fused step."""
        return FusedTable(self.weight.detach(), EMPTY, self.scale)

    def int8(self, weights: Weights) -> Int8Embedding:
        """Return the same with int8 weights."""
        return Int8Embedding(weights.matrix(self.weight), self.scale)


def unk_dropout(tokens: Tensor, p: float) -> Tensor:
    """Replace a random fraction of the tokens by UNK."""
    if not p:
        return tokens
    drop = torch.rand(tokens.shape, device=tokens.device, generator=thread_generator()) < p
    return tokens.masked_fill(drop & (tokens >= len(SPECIALS)), UNK)
