"""The Generator: a source in, a sequence of its own length out.

B rows, S source length, T target length, D width, V vocabulary, N real target symbols.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.core.options import Options
from regard.data.tensors.padded import Batch, Padded
from regard.data.tensors.special import BOS
from regard.data.tensors.state import State
from regard.inputs import Frontends
from regard.inputs.frontend import Embedding, Frontend
from regard.inputs.input import InputShape
from regard.inputs.text import Symbols
from regard.models.contracts import build_frontend
from regard.models.decoders import Decoder
from regard.models.encoders import Auto, Encoder
from regard.models.recurrent import RecurrentDecoder
from regard.models.transformer import TransformerDecoder
from regard.nn.capture_hooks import padding_mask
from regard.nn.int8 import Int8Linear, Weights


class Head(nn.Module):
    """Vectors to logits; tied to an embedding (Press and Wolf 2017) or with its own weights."""

    def __init__(self, weight: nn.Parameter, bias: bool = False) -> None:
        super().__init__()
        self.weight = weight
        self.bias = nn.Parameter(weight.new_zeros(len(weight))) if bias else None

    def forward(self, h: Tensor) -> Tensor:
        """(..., D) to (..., V)."""
        return F.linear(h, self.weight, self.bias)

    def int8(self, weights: Weights) -> Int8Linear:
        """The same with int8 weights."""
        bias = None if self.bias is None else weights.tensor(self.bias)
        return Int8Linear(weights.matrix(self.weight), bias)


class Generator(nn.Module):
    """Encoder, decoder and head. Training calls it; decoding calls `start` and `step`."""

    def __init__(
        self,
        frontend: Frontend,
        encoder: nn.Module,
        target: Embedding,
        decoder: TransformerDecoder | RecurrentDecoder,
        head: Head,
    ) -> None:
        super().__init__()
        self.frontend = frontend
        self.encoder = encoder
        self.target = target
        self.decoder: TransformerDecoder | RecurrentDecoder = decoder
        self.head = head

    def forward(self, batch: Batch) -> Tensor:
        """Logits (N, V) of every real target symbol, row by row; padding is left out."""
        assert batch.source is not None and batch.target is not None
        symbols, mask = batch.target.data, batch.target.mask
        inputs = F.pad(symbols[:, :-1], (1, 0), value=BOS)  # (B, T)
        state = self.start(batch.source)
        with padding_mask(mask):
            h, _ = self.decoder(self.target(inputs), state, mask)
        return self.head(h[mask])

    def start(self, source: Padded) -> State:
        """The decoder's state before its first symbol."""
        return self.decoder.start(self.encoder(self.frontend(source)))

    def step(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """Symbols (k*B, T) to the logits (k*B, T, V) of what follows each, and the new state."""
        h, state = self.vectors(symbols, state)
        return self.head(h), state

    def vectors(self, symbols: Tensor, state: State) -> tuple[Tensor, State]:
        """A step without the output layer: symbols (k*B, T) to (k*B, T, D), and the new state."""
        return self.decoder(self.target(symbols), state)


class GeneratorOptions(Options):
    """Any encoder with any decoder."""

    frontend: Frontends = Field(Symbols(), description="how sources become vectors")
    encoder: Encoder = Auto()
    decoder: Decoder = Auto()
    tied: bool = Field(True, description="the output layer shares the target embedding's weights")
    head_bias: bool = Field(False, description="the output layer adds a number to each symbol")
    embedding: int | None = Field(
        None, ge=0, description="size of the vectors of symbols, for recurrent sides; 0: as width"
    )

    @model_validator(mode="after")
    def _widths_fit(self) -> "GeneratorOptions":
        widths = (self.encoder.width, self.decoder.width)
        cross = getattr(self.decoder, "cross", None)
        alike = getattr(cross, "equal_widths", False)
        if cross is not None and alike and None not in widths and widths[0] != widths[1]:
            raise ValueError(
                f"cross {cross.kind} multiplies encoder and decoder vectors, but their widths are "
                f"{widths[0]} and {widths[1]}; make them equal or choose cross bilinear"
            )
        return self

    def build(self, shape: InputShape, target: int, shared: bool) -> Generator:
        """The model of such sources and of a target vocabulary of this size; `shared`: the source
        has the same vocabulary."""
        encoder, decoder = self.encoder, self.decoder
        assert not isinstance(encoder, Auto) and not isinstance(decoder, Auto)
        assert encoder.width and decoder.width
        sizes = self._inputs(encoder), self._inputs(decoder)
        scale = _scale(encoder, sizes[0])
        frontend = build_frontend(self.frontend, encoder, shape, sizes[0], scale)
        embedding = Embedding(target, sizes[1], _scale(decoder, sizes[1]))
        if shared and frontend.table is not None and sizes[0] == sizes[1]:
            embedding.weight = frontend.table.weight
        weight = embedding.weight
        if not self.tied or sizes[1] != decoder.width:
            weight = nn.Parameter(torch.randn(target, decoder.width) * decoder.width**-0.5)
        return Generator(
            frontend,
            encoder.build(frontend.width),
            embedding,
            decoder.build(encoder.output(frontend.width), sizes[1]),
            Head(weight, self.head_bias),
        )

    def _inputs(self, part: Any) -> int:
        """The size of the vectors that a side reads: only recurrent layers take another width."""
        return (self.embedding if part.kind == "recurrent" else None) or part.width


def _scale(part: Any, inputs: int) -> float:
    """What the embeddings of a side are multiplied by: they begin with variance 1 / inputs."""
    return part.scale if inputs == part.width else math.sqrt(inputs)
