"""The settings of Transformers."""

import math
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from regard.core.data_stats import DataStats
from regard.models.contracts import EncoderOptions, NetworkOptions
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.nn.attention import CrossAttention, SelfAttention
from regard.nn.feedforward import Activation, FeedForward
from regard.nn.kernels import Attention, Softmax
from regard.nn.kernels.kernel import KernelOptions, Shape
from regard.nn.layers import TransformerLayer
from regard.nn.norms import Layer, Norm, Norms
from regard.nn.positions import Position, Positions, Sinusoidal
from regard.nn.residual import NormPosition, Pre

DEEP = 6  # layers for large data


class TransformerOptions(NetworkOptions):
    """What Transformer encoders and decoders have in common; None is chosen from the data."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    kind: Literal["transformer"] = "transformer"
    layers: int | None = Field(None, gt=0, description="number of layers")
    width: int | None = Field(None, gt=0, description="width of the vectors")
    heads: int | None = Field(
        None, gt=0, description="number of attention heads; divides the width"
    )
    feedforward_width: int | None = Field(
        None, gt=0, description="inner width of the feed-forward layers"
    )
    dropout: float | None = Field(None, ge=0, lt=1, description="dropout rate")
    norm: Norms = Field(Layer(), description="normalization layer")
    norm_position: NormPosition = Field(Pre(), description="pre-norm or post-norm")
    activation: Activation = "relu"
    attention: Attention = Field(Softmax(), description="kind of self-attention")
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

    @model_validator(mode="after")
    def _positions_fit(self) -> "TransformerOptions":
        kernel, positions = self.attention, self.positions
        if positions.rotates and not kernel.supports.rotary:
            raise ValueError(
                f"positions {positions.kind} rotate queries and keys, and attention "
                f"{kernel.kind} has no products of them; choose positions sinusoidal"
            )
        if positions.biases and not kernel.supports.bias:
            raise ValueError(
                f"positions {positions.kind} add to the scores of attention, and attention "
                f"{kernel.kind} has none; choose positions sinusoidal"
            )
        return self

    def default_sizes(self, stats: DataStats, width: int) -> dict[str, Any]:
        """Heads of 64, or the nearest divisor; encoders are deeper than decoders if data is small:
        they cost the same to train, and decoding stays fast."""
        layers = self.default_layers if stats.tokens < 50_000_000 else DEEP
        heads = next(h for h in range(max(1, width // 64), 0, -1) if width % h == 0)
        return {"width": width, "layers": layers, "heads": heads, "feedforward_width": 4 * width}

    @property
    def scale(self) -> float:
        """What embeddings are multiplied by."""
        return math.sqrt(self.width or 1) if self.embedding_scale else 1.0

    def built_layers(
        self, causal: bool, cross: KernelOptions | None = None, memory_width: int = 0
    ) -> list[TransformerLayer]:
        """The layers of a stack. cross: of their attention to a memory of this width, if any."""
        assert self.width and self.heads and self.layers and self.feedforward_width
        assert self.dropout is not None
        width, heads, dropout = self.width, self.heads, self.dropout
        layers = []
        for _ in range(self.layers):
            attention = SelfAttention(
                width, heads, self.attention.build(Shape(width, heads, causal))
            )
            look = None
            if cross is not None:
                kernel = cross.build(Shape(width, heads, causal=False))
                look = CrossAttention(width, memory_width, heads, kernel)
            feed = FeedForward(width, self.feedforward_width, self.activation, dropout)
            residuals = [
                self.norm_position.build(self.norm, width, dropout, self.layers)
                for _ in range(2 if cross is None else 3)
            ]
            layers.append(TransformerLayer(attention, look, feed, residuals))
        return layers

    def order(self) -> Position:
        """How this stack knows the order of its tokens."""
        assert self.width and self.heads
        return self.positions.build(self.width, self.heads)

    def final_norm(self) -> Norm:
        """The norm after the last layer."""
        assert self.width is not None
        return self.norm_position.final(self.norm, self.width)


class TransformerEncoderOptions(TransformerOptions, EncoderOptions):
    """Self-attention over the source."""

    default_layers: ClassVar[int] = 3

    @model_validator(mode="after")
    def _attends_both_ways(self) -> "TransformerEncoderOptions":
        if not self.attention.supports.bidirectional:
            raise ValueError(
                f"attention {self.attention.kind} attends only to what is before, and an encoder "
                "attends both ways; choose attention softmax"
            )
        return self

    @property
    def uses(self) -> frozenset[str]:
        """Return the inputs that it uses in addition to the vectors."""
        supports = self.attention.supports
        return frozenset(name for name in ("bias", "edges") if getattr(supports, name))

    def build(self, inputs: int | None = None) -> TransformerEncoder:
        """The encoder; sizes must be filled."""
        assert self.dropout is not None
        layers = self.built_layers(causal=False)
        return TransformerEncoder(layers, self.order(), self.final_norm(), self.dropout)


class CausalTransformerOptions(TransformerOptions):
    """Masked self-attention: GPT (Radford et al. 2018)."""

    default_layers: ClassVar[int] = 4
    carries: ClassVar[bool] = False  # no state for the next batch: positions restart

    @model_validator(mode="after")
    def _hides_the_future(self) -> Self:
        if not self.attention.supports.causal:
            raise ValueError(
                f"attention {self.attention.kind} sees the future, which a decoder must not; use "
                "it in an encoder, and choose attention softmax here"
            )
        return self

    def build(self) -> TransformerDecoder:
        """The decoder; sizes must be filled."""
        assert self.dropout is not None
        layers = self.built_layers(causal=True)
        return TransformerDecoder(layers, self.order(), self.final_norm(), self.dropout)


class TransformerDecoderOptions(CausalTransformerOptions):
    """Masked self-attention and attention to the source."""

    default_layers: ClassVar[int] = 2
    cross: Attention = Field(Softmax(), description="kind of attention to the source")

    @model_validator(mode="after")
    def _attends_to_the_source(self) -> "TransformerDecoderOptions":
        if not self.cross.supports.cross:
            raise ValueError(
                f"cross {self.cross.kind} attends only within one sequence; choose cross softmax"
            )
        return self

    def build(  # type: ignore[override]
        self, memory_width: int, inputs: int | None = None
    ) -> TransformerDecoder:
        """The decoder over memory of this width; sizes must be filled."""
        assert self.dropout is not None
        layers = self.built_layers(True, self.cross, memory_width)
        return TransformerDecoder(layers, self.order(), self.final_norm(), self.dropout)
