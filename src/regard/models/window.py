"""Networks without memory: a position alone, or with the neighbors in a window.

B rows, S length, D width, R window.
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
    """Nothing between frontend and head: the model is linear in its vectors."""

    linear: ClassVar[bool] = True

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)

    def forward(self, source: Padded) -> Padded:
        """(B, S, D) to (B, S, D)."""
        return source._replace(data=self.dropout(source.data))


class MlpEncoder(nn.Module):
    """Layers f(W x + b) at each position on its own."""

    def __init__(self, sizes: list[int], activation: Activation, dropout: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(sizes))
        self.activation = ACTIVATIONS[activation]
        self.dropout = Dropout(dropout)

    def forward(self, source: Padded) -> Padded:
        """(B, S, inputs) to (B, S, D)."""
        return Padded(self.layered(source.data), source.mask)

    def layered(self, x: Tensor) -> Tensor:
        """(..., inputs) to (..., D)."""
        for layer in self.layers:
            x = self.activation(layer(self.dropout(x)))
            record_hidden(layer, x)
        return self.dropout(x)

    def rectified(self, x: Padded | Tensor, output: Padded | Tensor) -> Tensor:
        """What its last activation gives (..., D), for a call from x to output."""
        return output if isinstance(output, Tensor) else output.data


class WindowEncoder(nn.Module):
    """An MLP over each position and its R neighbors on each side (Collobert et al. 2011, 3.1).

    It is a convolution; with the largest value over all positions, Kim's network (2014).
    """

    def __init__(self, window: int, mlp: MlpEncoder) -> None:
        super().__init__()
        self.window = window
        self.mlp = mlp

    def forward(self, source: Padded) -> Padded:
        """(B, S, inputs) to (B, S, D); beyond the ends of a row lie zeros."""
        x = source.data * source.mask.unsqueeze(-1)
        x = F.pad(x, (0, 0, self.window, self.window))
        seen = x.unfold(1, 2 * self.window + 1, 1).transpose(2, 3).flatten(2)
        return self.mlp(Padded(seen, source.mask))


class Memoryless(EncoderOptions):
    """What networks without memory have in common; None is chosen from the data."""

    exports: ClassVar[frozenset[str]] = frozenset({"onnx"})
    width: int | None = Field(None, gt=0, description="width of the vectors")
    dropout: float | None = Field(None, ge=0, lt=1, description="dropout rate")

    @property
    def scale(self) -> float:
        """What embeddings are multiplied by: they begin small, so that rare words say little."""
        return 1.0

    @property
    def positions_without_context(self) -> frozenset[str]:
        return frozenset({"first", "last"})


class LinearEncoderOptions(Memoryless):
    """No hidden layer: linear, logistic and softmax regression."""

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
        """The encoder; whatever comes in goes out."""
        assert self.dropout is not None
        return LinearEncoder(self.dropout)


class MlpEncoderOptions(Memoryless):
    """Hidden layers at each position on its own."""

    direct: ClassVar[bool] = True
    kind: Literal["mlp"] = "mlp"
    layers: int | None = Field(None, gt=0, description="number of hidden layers")
    activation: Activation = "relu"

    def build(self, inputs: int | None = None) -> MlpEncoder:
        """The encoder of vectors of size `inputs`, by default its own width."""
        assert self.width and self.layers and self.dropout is not None
        sizes = [inputs or self.width] + [self.width] * self.layers
        return MlpEncoder(sizes, self.activation, self.dropout)


class WindowEncoderOptions(MlpEncoderOptions):
    """Hidden layers over each position and its neighbors."""

    direct: ClassVar[bool] = False
    default_pooling: ClassVar[str] = "max"
    kind: Literal["window"] = "window"  # type: ignore[assignment]
    window: int = Field(2, ge=0, description="number of neighbors on each side")

    @property
    def positions_without_context(self) -> frozenset[str]:
        return frozenset()

    def build(self, inputs: int | None = None) -> WindowEncoder:  # type: ignore[override]
        """The encoder; sizes must be filled."""
        assert self.width
        mlp = MlpEncoderOptions(
            **self.model_dump(include={"width", "layers", "activation", "dropout"})
        )
        return WindowEncoder(self.window, mlp.build((2 * self.window + 1) * self.width))
