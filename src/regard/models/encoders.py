"""Encoders: Padded vectors in, Padded vectors out, the same length.

B rows, S length, D width.
"""

import math
from typing import Annotated, Literal, TypeVar

from pydantic import Field, model_validator
from torch import Tensor, nn

from regard.core.options import Options
from regard.data.tensors.padded import Padded
from regard.data.tensors.tree import Tree
from regard.models.window import Linear, Mlp, Window
from regard.nn.attention import SelfAttention
from regard.nn.capture_hooks import padding_mask, record_hidden
from regard.nn.dropout import Dropout
from regard.nn.feedforward import Activation, FeedForward
from regard.nn.kernels import Attention, Softmax
from regard.nn.norms import NormKind, NormPlace, Residual, build_norm
from regard.nn.positions import Position, Positions, Sinusoidal
from regard.nn.recurrent import Bidirectional, Cell, Recurrence, ends


class TransformerEncoder(nn.Module):
    """Self-attention layers (Vaswani et al. 2017, 3.1)."""

    def __init__(
        self, layers: list["EncoderLayer"], positions: Position, norm: nn.Module, dropout: float
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.positions = positions
        self.norm = norm
        self.dropout = Dropout(dropout)

    def forward(self, source: Padded) -> Padded:
        """(B, S, D) to (B, S, D); padding is invisible to what is real."""
        mask = source.mask[:, None, None, :]  # (B, 1, 1, S)
        if source.bias is not None:
            mask = source.bias.masked_fill(~mask, float("-inf"))
        x = self.dropout(self.positions.embed(source.data, 0))
        with padding_mask(source.mask):
            for layer in self.layers:
                x = layer(x, mask)
        return Padded(self.norm(x), source.mask)


class SelfLayer(nn.Module):
    """Self-attention, then a feed-forward network, each in a residual branch."""

    def __init__(
        self, attention: SelfAttention, feedforward: FeedForward, residuals: list[Residual]
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feedforward = feedforward
        self.attend, self.feed = residuals

    def mix(self, x: Tensor, mask: Tensor | None, past: Tree, causal: bool) -> tuple[Tensor, Tree]:
        """(B, S, D) to (B, S, D), and what later steps need."""
        mixed, past = self.attention(self.attend.enter(x), mask, past, causal)
        x = self.attend.leave(x, mixed)
        x = self.feed.leave(x, self.feedforward(self.feed.enter(x)))
        record_hidden(self, x)
        return x, past


Layer = TypeVar("Layer", bound=SelfLayer)


class EncoderLayer(SelfLayer):
    """A layer that looks both ways."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, S, D) to (B, S, D)."""
        return self.mix(x, mask, None, False)[0]


class RecurrentEncoder(nn.Module):
    """Recurrent layers; the summary is the state at the end (of each direction)."""

    def __init__(self, body: Recurrence | Bidirectional, dropout: float) -> None:
        super().__init__()
        self.body = body
        self.dropout = Dropout(dropout)

    def forward(self, source: Padded) -> Padded:
        """(B, S, inputs) to (B, S, D)."""
        x = self.dropout(source.data)
        both = isinstance(self.body, Bidirectional)
        states = self.body(x, source.mask) if both else self.body(x)[0]
        states = self.dropout(states)
        return Padded(states, source.mask, None, ends(Padded(states, source.mask), both))


class Auto(Options):
    """The kind is chosen from the data, or is that of the other side where that is given."""

    kind: Literal["auto"] = "auto"
    layers: int | None = Field(None, gt=0, description="layers")
    width: int | None = Field(None, gt=0, description="size of the vectors")
    dropout: float | None = Field(None, ge=0, lt=1, description="share of activations zeroed")


class TransformerOptions(Options):
    """What Transformer encoders and decoders have in common; None is chosen from the data."""

    kind: Literal["transformer"] = "transformer"
    layers: int | None = Field(None, gt=0, description="layers")
    width: int | None = Field(None, gt=0, description="size of the vectors")
    heads: int | None = Field(None, gt=0, description="attention heads; divides the width")
    feedforward: int | None = Field(None, gt=0, description="inner size of the feed-forward net")
    dropout: float | None = Field(None, ge=0, lt=1, description="share of activations zeroed")
    norm: NormKind = "layer"
    norm_place: NormPlace = "pre"
    activation: Activation = "relu"
    attention: Attention = Softmax()
    positions: Positions = Sinusoidal()
    embedding_scale: bool = Field(True, description="multiply embeddings by sqrt(width)")

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "TransformerOptions":
        if self.width and self.heads and self.width % self.heads:
            fitting = [h for h in range(1, self.width + 1) if self.width % h == 0]
            near = min(fitting, key=lambda h: abs(h - self.heads))  # type: ignore[operator]
            raise ValueError(
                f"width {self.width} is not a multiple of heads {self.heads}; choose {near}"
            )
        return self

    @property
    def scale(self) -> float:
        """What embeddings are multiplied by."""
        return math.sqrt(self.width or 1) if self.embedding_scale else 1.0

    def residual(self) -> Residual:
        """A residual branch of this model."""
        assert self.width is not None and self.dropout is not None
        return Residual(self.width, self.norm, self.norm_place, self.dropout)

    def feed(self) -> FeedForward:
        """A feed-forward network of this model."""
        assert self.width is not None and self.feedforward is not None
        assert self.dropout is not None
        return FeedForward(self.width, self.feedforward, self.activation, self.dropout)

    def self_layers(self, kind: type[Layer]) -> list[Layer]:
        """The layers of a model without a source; sizes must be filled."""
        assert self.width and self.heads and self.layers
        return [
            kind(
                SelfAttention(self.width, self.heads, self.attention.build()),
                self.feed(),
                [self.residual(), self.residual()],
            )
            for _ in range(self.layers)
        ]

    def places(self) -> Position:
        """How this model knows the order of its symbols."""
        assert self.width is not None
        return self.positions.build(self.width)

    def final_norm(self) -> nn.Module:
        """The norm after the last layer: only where norms stand before the branches."""
        assert self.width is not None
        return build_norm(self.norm, self.width) if self.norm_place == "pre" else nn.Identity()


class TransformerEncoderOptions(TransformerOptions):
    """Self-attention over the source."""

    def build(self, inputs: int | None = None) -> TransformerEncoder:
        """The encoder; sizes must be filled."""
        assert self.dropout is not None
        layers = self.self_layers(EncoderLayer)
        return TransformerEncoder(layers, self.places(), self.final_norm(), self.dropout)


class RecurrentEncoderOptions(Options):
    """Recurrent layers over the source; None is chosen from the data."""

    kind: Literal["recurrent"] = "recurrent"
    cell: Cell = "lstm"
    layers: int | None = Field(None, gt=0, description="layers")
    width: int | None = Field(None, gt=0, description="size of the vectors (both directions)")
    bidirectional: bool = Field(True, description="read from both ends, half the width each")
    dropout: float | None = Field(None, ge=0, lt=1, description="share of activations zeroed")

    @model_validator(mode="after")
    def _even(self) -> "RecurrentEncoderOptions":
        if self.bidirectional and self.width and self.width % 2:
            raise ValueError(
                f"width {self.width} is odd, but two directions share it; choose {self.width + 1}"
            )
        return self

    @property
    def scale(self) -> float:
        """What embeddings are multiplied by: they begin with variance 1 / width."""
        return math.sqrt(self.width or 1)

    def build(self, inputs: int | None = None) -> RecurrentEncoder:
        """The encoder of vectors of size `inputs`, or of its width; sizes must be filled."""
        assert self.width and self.layers and self.dropout is not None
        kind = Bidirectional if self.bidirectional else Recurrence
        body = kind(self.cell, inputs or self.width, self.width, self.layers, self.dropout)
        return RecurrentEncoder(body, self.dropout)


Encoder = Annotated[
    Auto | TransformerEncoderOptions | RecurrentEncoderOptions | Linear | Mlp | Window,
    Field(discriminator="kind"),
]
