"""The encoder that fills gaps: symbols are masked and predicted from both sides (BERT).

B rows, S length, D width, V vocabulary, N masked symbols.
"""

from typing import Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.core.options import Options
from regard.data.tensors.padded import Batch
from regard.inputs.frontends import Embedding, SymbolFrontend, WordFrontend, Words
from regard.models.encoders import Auto, Encoder
from regard.nn.int8 import Int8Linear, Weights


class MaskedModel(nn.Module):
    """Frontend and encoder, as taggers and classifiers have them, and a head over all symbols."""

    def __init__(
        self, frontend: SymbolFrontend | WordFrontend, encoder: nn.Module, width: int
    ) -> None:
        super().__init__()
        self.frontend = frontend
        self.encoder = encoder
        symbols = self.embedding.weight
        self.narrow = nn.Linear(width, symbols.shape[1])
        self.norm = nn.LayerNorm(symbols.shape[1])
        self.head = TiedHead(symbols)

    @property
    def embedding(self) -> Embedding:
        """The embedding of symbols, to which the head is tied."""
        frontend = self.frontend
        return frontend.words if isinstance(frontend, WordFrontend) else frontend.symbols

    def forward(self, batch: Batch, chosen: Tensor) -> Tensor:
        """Logits (N, V) of the symbols at the chosen places (B, S)."""
        h = self.encoder(self.frontend(batch)).data[chosen]  # (N, D)
        return self.head(self.norm(F.gelu(self.narrow(h))))


class TiedHead(nn.Module):
    """Logits by the weights of an embedding, and a bias."""

    def __init__(self, weight: nn.Parameter) -> None:
        super().__init__()
        self.weight = weight
        self.bias = nn.Parameter(weight.new_zeros(len(weight)))

    def forward(self, h: Tensor) -> Tensor:
        """(N, D) to (N, V)."""
        return F.linear(h, self.weight, self.bias)

    def int8(self, weights: Weights) -> Int8Linear:
        """The same with int8 weights."""
        return Int8Linear(weights.matrix(self.weight), weights.tensor(self.bias))


class MaskedOptions(Options):
    """An encoder that is trained to fill gaps; `--from` starts other models from it."""

    kind: Literal["masked"] = "masked"
    encoder: Encoder = Auto()
    words: Words = Field(Words(), description="where task.symbols=words: how a word is read")

    def build(self, vocabulary: int, letters: int | None) -> MaskedModel:
        """The model for a vocabulary of symbols, or of words and letters."""
        encoder = self.encoder
        assert not isinstance(encoder, Auto) and encoder.width and encoder.dropout is not None
        frontend: SymbolFrontend | WordFrontend
        if letters is None:
            frontend = SymbolFrontend(Embedding(vocabulary, encoder.width, encoder.scale))
        else:
            frontend = self.words.build(vocabulary, letters, encoder.width, encoder.dropout)
        return MaskedModel(frontend, encoder.build(), encoder.width)
