"""The options of Transformers."""

import math
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator
from typing_extensions import Self

from regard.core.data_stats import DataStats
from regard.inputs.frontend import Frontend
from regard.models.contracts import EncoderOptions, NetworkOptions
from regard.models.transformer import TransformerDecoder, TransformerEncoder
from regard.nn.attention import CrossAttention, HeadSizes, SelfAttention
from regard.nn.feedforward import GATED, FeedForward, FeedForwardActivation
from regard.nn.kernels import Attention, Softmax
from regard.nn.kernels.kernel import KernelOptions, Shape
from regard.nn.layers import TransformerLayer
from regard.nn.norms import Layer, Norm, Norms
from regard.nn.positions import Position, Positions, Sinusoidal
from regard.nn.residual import NormPosition, Pre, Residual

DEEP = 6  # number of layers for large data


class TransformerOptions(NetworkOptions):
    """Common options of Transformer encoders and decoders. None is replaced by a default."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx", "ctranslate2"})
    default_warmup: ClassVar[float] = 400  # with fewer updates, many runs never start to learn
    causal: ClassVar[bool] = False
    kind: Literal["transformer"] = "transformer"
    layers: int | None = Field(None, gt=0, description="number of layers")
    width: int | None = Field(None, gt=0, description="hidden size")
    heads: int | None = Field(
        None, gt=0, description="number of attention heads; must divide the width"
    )
    kv_heads: int = Field(
        0,
        ge=0,
        description="heads of keys and values: 0 (all), 1 (multi-query) or between (grouped)",
    )
    qk_norm: bool = Field(False, description="normalize queries and keys per head")
    feedforward_width: int | None = Field(
        None, gt=0, description="inner width of the feed-forward layers"
    )
    dropout: float | None = Field(None, ge=0, lt=1, description="dropout rate")
    norm: Norms = Field(Layer(), description="normalization layer")
    norm_position: NormPosition = Field(Pre(), description="where the norms of a layer are")
    residual: bool = Field(True, description="add the input of each branch to its output")
    activation: FeedForwardActivation = "relu"
    attention: Attention = Field(Softmax(), description="kind of self-attention")
    positions: Positions = Sinusoidal()
    embedding_scale: bool = Field(True, description="multiply embeddings by sqrt(width)")

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "TransformerOptions":
        if self.width and self.heads and self.width % self.heads:
            divisors = [h for h in range(1, self.width + 1) if self.width % h == 0]
            near = min(divisors, key=lambda h: abs(h - self.heads))  # type: ignore[operator]
            raise ValueError(
                f"width {self.width} is not a multiple of heads {self.heads}; use {near}"
            )
        if self.heads and self.kv_heads and self.heads % self.kv_heads:
            raise ValueError(
                f"heads {self.heads} is not a multiple of kv_heads {self.kv_heads}: each head of "
                "keys and values serves as many heads of queries"
            )
        return self

    @model_validator(mode="after")
    def _projections_fit(self) -> "TransformerOptions":
        reads = self.attention.build(Shape(4, 1, causal=False)).reads
        missing = [name for name in ("query", "key") if name not in reads]
        kind = self.attention.kind
        if self.qk_norm and missing:
            names = " or ".join(f"{name} projection" for name in missing)
            raise ValueError(
                f"qk_norm normalizes queries and keys, but attention {kind} has no {names}"
            )
        if self.heads and "key" in reads and missing and self.kv_heads not in (0, self.heads):
            raise ValueError(
                f"kv_heads {self.kv_heads}: attention {kind} uses keys as queries, so heads with "
                "the same keys would be the same; use kv_heads 0"
            )
        return self

    @model_validator(mode="after")
    def _positions_fit(self) -> "TransformerOptions":
        kernel, positions = self.attention, self.positions
        if self.width and self.heads and (why := positions.problem(self.width, self.heads)):
            raise ValueError(f"positions {positions.kind} {why}; change heads or width")
        if positions.rotates and not kernel.supports.rotary:
            raise ValueError(
                f"positions {positions.kind} rotate queries and keys, which attention "
                f"{kernel.kind} does not support; use positions sinusoidal"
            )
        if positions.biases and not kernel.supports.bias:
            raise ValueError(
                f"positions {positions.kind} add a bias to attention scores, which attention "
                f"{kernel.kind} does not support; use positions sinusoidal"
            )
        return self

    @model_validator(mode="after")
    def _check_order(self) -> "TransformerOptions":
        if self.causal:  # no such attention is causal, which is an error of its own
            return self
        if self.attention.supports.edges and self.positions.ordered:
            raise ValueError(
                f"positions {self.positions.kind} number the positions, but the nodes that "
                f"attention {self.attention.kind} connects have no order; use positions none"
            )
        return self

    @model_validator(mode="after")
    def _check_residual(self) -> "TransformerOptions":
        if self.norm_position.connects and not self.residual:
            raise ValueError(
                f"norm_position {self.norm_position.kind} scales the residual connection, which "
                "residual=false removes; use norm_position post"
            )
        return self

    @property
    def features(self) -> dict[str, Any]:
        """Return what distinguishes the network from a default Transformer, by name."""
        found: dict[str, Any] = (
            {} if self.attention.kind == "softmax" else {"attention": self.attention.kind}
        )
        if self.kv_heads not in (0, self.heads):
            found["kv_heads"] = str(self.kv_heads)
        return found

    def not_exported(self, engine: str) -> list[str]:
        found = ["qk_norm=true"] if self.qk_norm else []
        if self.kv_heads not in (0, self.heads):
            found.append(f"kv_heads={self.kv_heads}")
        if engine == "ctranslate2":
            known = self.activation in ("relu", "gelu", "silu")
            found += [] if known else [f"activation={self.activation}"]
            found += [] if self.residual else ["residual=false"]
        return found

    def default_sizes(self, stats: DataStats, width: int) -> dict[str, Any]:
        """Return the default sizes, with heads at least 64 wide if the width allows it.

        For small data, encoders are deeper than decoders, because decoding then stays fast.
        """
        layers = self.default_layers if stats.tokens < 50_000_000 else DEEP
        heads = next(h for h in range(max(1, width // 64), 0, -1) if width % h == 0)
        return {
            "width": width,
            "layers": layers,
            "heads": heads,
            "feedforward_width": 4 * width,
        }

    @property
    def weights(self) -> int:
        assert self.width and self.layers and self.feedforward_width and self.heads
        attentions = 1 + hasattr(self, "cross")
        keys = self.width * (self.kv_heads or self.heads) // self.heads
        attention = 2 * self.width + 2 * keys
        matrices = 2 + (self.activation in GATED)
        inner = matrices * self.feedforward_width
        return self.layers * self.width * (attentions * attention + inner)

    @property
    def scale(self) -> float:
        """Return the factor that embeddings are multiplied by."""
        return math.sqrt(self.width or 1) if self.embedding_scale else 1.0

    def build_layers(
        self,
        causal: bool,
        cross: KernelOptions | None = None,
        memory_width: int = 0,
        relations: int = 0,
    ) -> list[TransformerLayer]:
        """Return the layers. cross: attention to an encoder output of width `memory_width`.

        relations: kinds of the edges of input graphs.
        """
        assert self.width and self.heads and self.layers and self.feedforward_width
        assert self.dropout is not None
        width, heads, dropout = self.width, self.heads, self.dropout
        sizes = HeadSizes(width, heads, self.kv_heads or heads, self.qk_norm)
        layers, shape = [], Shape(width, heads, causal, relations)
        for _ in range(self.layers):
            attention = SelfAttention(sizes, self.attention.build(shape))
            cross_attention = None
            if cross is not None:
                kernel = cross.build(Shape(width, heads, causal=False))
                cross_attention = CrossAttention(sizes, memory_width, kernel)
            feed = FeedForward(width, self.feedforward_width, self.activation, dropout)
            residuals = self.build_residuals(2 if cross is None else 3)
            layers.append(TransformerLayer(attention, cross_attention, feed, residuals))
        return layers

    def build_residuals(self, branches: int) -> list[Residual]:
        """Return the residual branches of a layer."""
        assert self.width and self.layers and self.dropout is not None
        sizes = self.width, self.dropout, self.layers, branches
        found = [self.norm_position.build(self.norm, *sizes) for _ in range(branches)]
        for residual in found:
            residual.connected = self.residual
        return found

    def build_positions(self) -> Position:
        """Return the module for positions."""
        assert self.width and self.heads
        return self.positions.build(self.width, self.heads, self.causal)

    def final_norm(self) -> Norm:
        """Return the norm after the last layer."""
        assert self.width is not None
        return self.norm_position.final(self.norm, self.width)


class TransformerEncoderOptions(TransformerOptions, EncoderOptions):
    """Options of a Transformer encoder."""

    default_layers: ClassVar[int] = 3

    @model_validator(mode="after")
    def _check_bidirectional(self) -> "TransformerEncoderOptions":
        if not self.attention.supports.bidirectional:
            raise ValueError(
                f"attention {self.attention.kind} is causal only, but an encoder is bidirectional; "
                "use attention softmax"
            )
        return self

    @property
    def uses(self) -> frozenset[str]:
        """Return which of `bias` and `edges` of a `Padded` input the attention uses."""
        supports = self.attention.supports
        carried = {"bias": supports.input_bias, "edges": supports.edges}
        return frozenset(name for name, is_used in carried.items() if is_used)

    def build(self, inputs: int | None = None, relations: int = 0) -> TransformerEncoder:
        """Return the encoder. Sizes must be set. inputs: unused. relations: kinds of edges."""
        assert self.dropout is not None
        layers = self.build_layers(causal=False, relations=relations)
        return TransformerEncoder(layers, self.build_positions(), self.final_norm(), self.dropout)

    def build_for(self, frontend: Frontend) -> TransformerEncoder:
        return self.build(relations=frontend.relations)


class CausalTransformerOptions(TransformerOptions):
    """Options of a causal Transformer without a source: GPT (Radford et al. 2018)."""

    default_layers: ClassVar[int] = 4
    causal: ClassVar[bool] = True
    carries: ClassVar[bool] = False  # no state is carried over: positions restart per batch

    @model_validator(mode="after")
    def _check_causal(self) -> Self:
        if not self.attention.supports.causal:
            raise ValueError(
                f"attention {self.attention.kind} is not causal, so only an encoder can use it; "
                "use attention softmax"
            )
        return self

    def build(self) -> TransformerDecoder:
        """Return the decoder. Sizes must be set."""
        assert self.dropout is not None
        layers = self.build_layers(causal=True)
        return TransformerDecoder(layers, self.build_positions(), self.final_norm(), self.dropout)


class TransformerDecoderOptions(CausalTransformerOptions):
    """Options of a Transformer decoder with attention to the source."""

    default_layers: ClassVar[int] = 2
    cross: Attention = Field(Softmax(), description="kind of attention to the source")

    @property
    def aligns(self) -> bool:  # type: ignore[override]
        return self.cross.aligns

    @model_validator(mode="after")
    def _check_cross(self) -> "TransformerDecoderOptions":
        if not self.cross.supports.cross:
            raise ValueError(
                f"cross {self.cross.kind} supports self-attention only; use cross softmax"
            )
        return self

    def build(  # type: ignore[override]
        self, memory_width: int, inputs: int | None = None
    ) -> TransformerDecoder:
        """Return the decoder. memory_width: width of the encoder output. inputs: unused."""
        assert self.dropout is not None
        layers = self.build_layers(True, self.cross, memory_width)
        return TransformerDecoder(layers, self.build_positions(), self.final_norm(), self.dropout)
