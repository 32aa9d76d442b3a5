"""Feed-forward encoders of each position alone, or of a window of neighboring positions.

B rows (examples of the batch), S length, D width, R neighbors on each side (`window`).
"""

import itertools
from typing import Any, ClassVar, Literal

import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from regard.core.data_stats import DataStats
from regard.data.tensors.padded import Padded
from regard.models.contracts import EncoderOptions
from regard.nn.capture_hooks import record_hidden
from regard.nn.dropout import Dropout
from regard.nn.feedforward import ACTIVATIONS, Activation


class LinearEncoder(nn.Module):
    """An encoder without layers, for models that are linear in their input vectors."""

    linear: ClassVar[bool] = True

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)

    def forward(self, source: Padded) -> Padded:
        """Return the input vectors (B, S, D) with dropout."""
        return source._replace(data=self.dropout(source.data))


class MlpEncoder(nn.Module):
    """An MLP, applied to each position: layers f(W x + b)."""

    def __init__(self, sizes: list[int], activation: Activation, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(sizes))
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(self, source: Padded) -> Padded:
        """Return the hidden vectors (B, S, D) for vectors (B, S, inputs)."""
        return Padded(self.apply_layers(source.data), source.mask)

    def apply_layers(self, x: Tensor) -> Tensor:
        """Return the output of the last layer (..., D) for vectors (..., inputs)."""
        for layer in self.layers:
            x = self.activation(layer(self.dropout(x)))
            record_hidden(layer, x)
        return self.dropout(x)

    def rectified(self, x: Padded | Tensor, output: Padded | Tensor) -> Tensor:
        """Return the last activation (..., D) of a call with input x, given its output."""
        return output if isinstance(output, Tensor) else output.data


class WindowEncoder(nn.Module):
    """An MLP over each position and its R neighbors on each side (Collobert et al. 2011, 3.1).

    It is a convolution. With max pooling, it is the network of Kim (2014).
    """

    def __init__(self, window: int, mlp: MlpEncoder) -> None:
        super().__init__()
        self.window = window
        self.mlp = mlp

    def forward(self, source: Padded) -> Padded:
        """Return (B, S, D) for vectors (B, S, inputs), with zeros beyond both ends of a row."""
        x = source.data * source.mask.unsqueeze(-1)
        x = F.pad(x, (0, 0, self.window, self.window))
        windows = x.unfold(1, 2 * self.window + 1, 1).transpose(2, 3).flatten(2)
        return self.mlp(Padded(windows, source.mask))


class Memoryless(EncoderOptions):
    """Common options of feed-forward encoders. None is replaced by a default."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx"})
    width: int | None = Field(None, gt=0, description="hidden size")
    dropout: float | None = Field(None, ge=0, lt=1, description="dropout rate")

    @property
    def scale(self) -> float:
        """Return the factor of embeddings, which is small so that rare words have little effect."""
        return 1.0

    @property
    def uses(self) -> frozenset[str]:
        """Return `nodes`: positions without order are supported."""
        return frozenset({"nodes"})

    @property
    def positions_without_context(self) -> frozenset[str]:
        return frozenset({"first", "last"})


class LinearEncoderOptions(Memoryless):
    """Options of models without hidden layers: linear, logistic and softmax regression."""

    direct: ClassVar[bool] = True
    linear: ClassVar[bool] = True
    kind: Literal["linear"] = "linear"

    def default_sizes(self, stats: DataStats, width: int) -> dict[str, Any]:
        return {"width": width}

    def default_dropout(self, stats: DataStats, config: Any) -> float:
        return 0.0 if stats.vectors else 0.3

    def output(self, inputs: int) -> int:
        return inputs

    def build(self, inputs: int | None = None) -> LinearEncoder:
        """Return the encoder, which only applies dropout."""
        assert self.dropout is not None
        return LinearEncoder(self.dropout)


class MlpEncoderOptions(Memoryless):
    """Options of an MLP per position."""

    direct: ClassVar[bool] = True
    kind: Literal["mlp"] = "mlp"
    layers: int | None = Field(None, gt=0, description="number of hidden layers")
    activation: Activation = "relu"

    def build(self, inputs: int | None = None) -> MlpEncoder:
        """Return the encoder. inputs: width of the input vectors, by default `width`."""
        assert self.width and self.layers and self.dropout is not None
        sizes = [inputs or self.width] + [self.width] * self.layers
        return MlpEncoder(sizes, self.activation, self.dropout)


class WindowEncoderOptions(MlpEncoderOptions):
    """Options of an MLP over each position and its neighbors."""

    direct: ClassVar[bool] = False
    default_pooling: ClassVar[str] = "max"
    kind: Literal["window"] = "window"  # type: ignore[assignment]
    window: int = Field(2, ge=0, description="number of neighbors on each side")

    @property
    def weights(self) -> int:
        assert self.width
        return super().weights + 2 * self.window * self.width**2

    @property
    def uses(self) -> frozenset[str]:
        return frozenset()

    @property
    def default_adversarial(self) -> float:
        """Return 0.5: embeddings of tokens have a norm of about 1."""
        return 0.5

    @property
    def positions_without_context(self) -> frozenset[str]:
        return frozenset()

    def build(self, inputs: int | None = None) -> WindowEncoder:  # type: ignore[override]
        """Return the encoder, for input vectors of width `width`. inputs: unused."""
        assert self.width
        mlp = MlpEncoderOptions(
            **self.model_dump(include={"width", "layers", "activation", "dropout"})
        )
        return WindowEncoder(self.window, mlp.build((2 * self.window + 1) * self.width))
