"""Frontends: what goes in, whatever it is, becomes Padded vectors (B, S, D).

B rows, S length, D width, V vocabulary, U different words, L letters, F numbers of a vector.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.core.options import Options
from regard.data.tensors.padded import Batch, Padded
from regard.data.tensors.special import SPECIALS, UNK
from regard.nn.capture_hooks import record_input
from regard.nn.dropout import Dropout, own_generator
from regard.nn.int8 import Int8Embedding, Weights
from regard.nn.recurrent import Bidirectional, ends


class Embedding(nn.Module):
    """Symbols to vectors, scaled; begins with variance 1 / D before the scale."""

    def __init__(self, size: int, width: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, width) * width**-0.5)
        self.scale = scale

    def forward(self, symbols: Tensor) -> Tensor:
        """(B, T) to (B, T, D)."""
        return record_input(self, F.embedding(symbols, self.weight) * self.scale)

    def int8(self, weights: Weights) -> Int8Embedding:
        """The same with int8 weights."""
        return Int8Embedding(weights.matrix(self.weight), self.scale)


class SymbolFrontend(nn.Module):
    """Symbols of a vocabulary, each a vector; in training a share `hidden` of them is UNK."""

    def __init__(self, symbols: Embedding, hidden: float = 0.0) -> None:
        super().__init__()
        self.symbols = symbols
        self.hidden = hidden

    def forward(self, batch: Batch) -> Padded:
        """Symbols (B, S) to vectors (B, S, D)."""
        assert batch.source is not None
        data = hide(batch.source.data, self.hidden) if self.training else batch.source.data
        return batch.source._replace(data=self.symbols(data))


class VectorFrontend(nn.Module):
    """Vectors as they are, or mapped to the width of the encoder."""

    def __init__(self, adapt: nn.Module) -> None:
        super().__init__()
        self.adapt = adapt

    def forward(self, batch: Batch) -> Padded:
        """(B, 1, F) to (B, 1, D)."""
        assert batch.source is not None
        return batch.source._replace(data=self.adapt(record_input(self, batch.source.data)))


class WordFrontend(nn.Module):
    """Words as wholes and as their letters, side by side, mapped to the width of the encoder.

    Letters give a word that training never saw a vector that is of use (Ma and Hovy 2016;
    Lample et al. 2016). In training a share `hidden` of the words is UNK, so that the model
    learns to read by letters alone.
    """

    def __init__(
        self, words: Embedding, spelling: nn.Module | None, join: nn.Module, hidden: float
    ) -> None:
        super().__init__()
        self.words = words
        self.spelling = spelling
        self.join = join
        self.hidden = hidden

    def forward(self, batch: Batch) -> Padded:
        """Words (B, S, 2) to vectors (B, S, D)."""
        assert batch.source is not None
        words, places = batch.source.data.unbind(-1)  # (B, S) each
        x = self.words(hide(words, self.hidden) if self.training else words)
        if self.spelling is not None:
            assert batch.letters is not None
            spelt = self.spelling(batch.letters)  # (U, C)
            x = torch.cat([x, F.embedding(places, spelt)], -1)
        return batch.source._replace(data=record_input(self, self.join(x)))


def hide(symbols: Tensor, share: float) -> Tensor:
    """The symbols with a random share of them turned into UNK."""
    if not share:
        return symbols
    drop = torch.rand(symbols.shape, device=symbols.device, generator=own_generator()) < share
    return symbols.masked_fill(drop & (symbols >= len(SPECIALS)), UNK)


class ConvolvedLetters(nn.Module):
    """Convolutions over the letters, the largest value of each (Kim et al. 2016; Ma, Hovy 2016)."""

    def __init__(self, letters: Embedding, width: int, spans: tuple[int, ...]) -> None:
        super().__init__()
        self.letters = letters
        inner = letters.weight.shape[1]
        shares = [width // len(spans) + (i < width % len(spans)) for i in range(len(spans))]
        self.spans = nn.ModuleList(
            nn.Linear(span * inner, share) for span, share in zip(spans, shares, strict=True)
        )
        self.sizes = spans

    def forward(self, words: Padded) -> Tensor:
        """Letters (U, L) to one vector a word (U, C)."""
        reach = max(self.sizes) - 1
        x = self.letters(words.data) * words.mask.unsqueeze(-1)
        x = F.pad(x, (0, 0, reach, reach))  # (U, L + 2 reach, E)
        mask = F.pad(words.mask, (reach, reach))
        found = []
        for size, linear in zip(self.sizes, self.spans, strict=True):
            seen = x.unfold(1, size, 1).transpose(2, 3).flatten(2)  # (U, places, size * E)
            real = mask.unfold(1, size, 1).any(-1, keepdim=True)  # (U, places, 1)
            found.append(linear(seen).masked_fill(~real, float("-inf")).amax(1))
        return torch.cat(found, -1).relu()


class RecurrentLetters(nn.Module):
    """An LSTM from each end of the word, their last states (Ling et al. 2015)."""

    def __init__(self, letters: Embedding, width: int) -> None:
        super().__init__()
        self.letters = letters
        self.body = Bidirectional("lstm", letters.weight.shape[1], width, 1, 0.0)

    def forward(self, words: Padded) -> Tensor:
        """Letters (U, L) to one vector a word (U, C)."""
        states = self.body(self.letters(words.data), words.mask)
        return ends(Padded(states, words.mask), both=True)


class Words(Options):
    """Words by their embedding and by their letters."""

    width: int = Field(128, gt=0, description="size of the vector of a whole word")
    letters: Literal["convolution", "recurrence", "none"] = Field(
        "convolution", description="how a word is read letter by letter"
    )
    letter_width: int = Field(128, ge=4, description="size of the vector of its spelling; even")
    hidden: float = Field(
        0.15, ge=0, lt=1, description="share of words hidden in training, so that letters count"
    )

    def build(self, words: int, letters: int, width: int, dropout: float) -> WordFrontend:
        """The frontend for vocabularies of these sizes and an encoder of this width."""
        whole = Embedding(words, self.width, 1.0)
        spelling: nn.Module | None = None
        size = self.letter_width
        if self.letters == "recurrence":
            size += size % 2  # half of it from each end
        if self.letters != "none":
            each = Embedding(letters, 32, 32**0.5)
            spelling = (
                ConvolvedLetters(each, size, (2, 3, 4, 5))
                if self.letters == "convolution"
                else RecurrentLetters(each, size)
            )
        inputs = self.width + (size if spelling is not None else 0)
        join = nn.Sequential(Dropout(dropout), nn.Linear(inputs, width))
        return WordFrontend(whole, spelling, join, self.hidden)
