"""Layers with int8 weights, which need a quarter of the memory. Activations stay fp32.

Only weights are rounded. Padding and the batch size change activations by about 1e-7. If
activations were rounded too, this could flip a rounding decision, a step of 1/127. Predictions
would then depend on the other texts in the batch.

Shapes: O outputs, I inputs, D width, B batch size, T length.
"""

from abc import ABC, abstractmethod
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.nn.capture_hooks import record_input
from regard.nn.fused import TILE, FusedTable, LinearWeights

MAX_INT8 = 127  # symmetric around zero


class Int8Matrix(nn.Module):
    """A matrix (O, I) in int8 with a scale per row: values * scale, with error <= scale / 2.

    An embedding and an output layer that are tied share one matrix.
    """

    values: Tensor  # (O, I), int8
    scale: Tensor  # (O,)

    def __init__(self, values: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("values", values)
        self.register_buffer("scale", scale)

    @classmethod
    def of(cls, weight: Tensor) -> "Int8Matrix":
        """Return a weight matrix (O, I) rounded to int8. The largest value of each row is exact."""
        weight = weight.detach().float()
        largest = weight.abs().amax(1)  # (O,)
        scale = torch.where(largest > 0, largest / MAX_INT8, 1.0)
        return cls((weight / scale[:, None]).round().to(torch.int8), scale)

    def dequantized(self) -> Tensor:
        """Return the matrix (O, I) in fp32."""
        return self.values.to(self.scale.dtype).mul_(self.scale[:, None])

    def rows(self, indices: Tensor) -> Tensor:
        """Return the rows (..., I) in fp32 at indices (...)."""
        found = F.embedding(indices, self.values).to(self.scale.dtype)
        return found.mul_(self.scale[indices].unsqueeze(-1))

    def times(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return the matrix times x (..., I), plus the bias: (..., O). Convert tiles to fp32."""
        values, scale = self.values.t(), self.scale  # (I, O)
        if values.numel() <= TILE:
            product = x @ values.to(scale.dtype)
        else:
            tiles = values.split(max(1, TILE // len(values)), 1)
            product = torch.cat([x @ tile.to(scale.dtype) for tile in tiles], -1)
        return product.mul_(scale) if bias is None else torch.addcmul(bias, product, scale)


class Weights(ABC):
    """The source of a model's weights: the model itself or a file.

    known: the int8 matrices so far, by the id of the weight. So tied weights share one matrix.
    """

    def __init__(self) -> None:
        self.known: dict[int, Int8Matrix] = {}

    def matrix(self, weight: Tensor) -> Int8Matrix:
        """Return a weight matrix of the model in int8."""
        if id(weight) not in self.known:
            self.known[id(weight)] = self.read_matrix(weight)
        return self.known[id(weight)]

    @abstractmethod
    def read_matrix(self, weight: Tensor) -> Int8Matrix:
        """Return a weight matrix of the model in int8. Called once per weight."""

    @abstractmethod
    def tensor(self, weight: Tensor) -> Tensor:
        """Return a weight or a buffer of the model that is not quantized."""


class Int8(nn.Module):
    """Base class of layers with int8 weights, which cannot be trained."""

    def train(self, mode: bool = True) -> "Int8":
        """Raise UserError for training mode."""
        if mode:
            raise UserError(
                "a model with int8 weights cannot be trained: updates are smaller than the "
                "rounding steps",
                help="load it without quantize, train it, and quantize it again",
            )
        return super().train(False)


class Int8Linear(Int8):
    """A linear layer W x + b."""

    def __init__(self, matrix: Int8Matrix, bias: Tensor | None) -> None:
        super().__init__()
        self.matrix = matrix
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)
        self.out_features, self.in_features = matrix.values.shape

    def forward(self, x: Tensor) -> Tensor:
        """Return the output (..., O) for x (..., I)."""
        return self.matrix.times(x, self.bias)

    def fused(self) -> LinearWeights | None:
        """Return the weights for the fused step (`nn.fused`)."""
        if self.bias is None:
            return None
        return [self.matrix.values, self.bias.detach(), self.matrix.scale]


class Int8Embedding(Int8):
    """An embedding whose vectors are multiplied by `scale`."""

    def __init__(self, matrix: Int8Matrix, scale: float) -> None:
        super().__init__()
        self.matrix = matrix
        self.scale = scale

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vectors (B, T, D) of tokens (B, T)."""
        return record_input(self, self.matrix.rows(tokens).mul_(self.scale))

    def fused(self) -> FusedTable:
        """Return the weights for the fused step (`nn.fused`)."""
        return FusedTable(self.matrix.values, self.matrix.scale, self.scale)


class Int8Recurrent(Int8):
    """A left-to-right recurrent layer with the interface of `nn.LSTM` and others (batch first).

    For a single token, the step is computed here, because torch's LSTM has a large overhead on a
    CPU. For more tokens, the weights are converted to fp32 for torch's kernel.
    """

    def __init__(self, entering: Int8Linear, staying: Int8Linear) -> None:
        super().__init__()
        self.entering = entering  # for the input
        self.staying = staying  # for the previous state
        self.gates = staying.out_features // staying.in_features  # rnn 1, gru 3, lstm 4

    def forward(self, x: Tensor, start: Any = None) -> tuple[Tensor, Any]:
        """Return outputs (B, T, D) for x (B, T, I), and the state (1, B, D), two for an LSTM."""
        if start is None:
            zeros = x.new_zeros(1, len(x), self.staying.in_features)
            start = (zeros, zeros) if self.gates == 4 else zeros
        if x.shape[1] != 1:
            return self._rows(x, start)
        states = start if self.gates == 4 else (start,)
        after = self._step(x[:, 0], *(state[0] for state in states))
        end = tuple(state.unsqueeze(0) for state in after)
        return after[0].unsqueeze(1), end if self.gates == 4 else end[0]

    def _rows(self, x: Tensor, start: Any) -> tuple[Tensor, Any]:
        """Return the outputs for several tokens and the final state, by torch's layer."""
        layers = (self.entering, self.staying)
        weights = [*(one.matrix.dequantized() for one in layers), *(one.bias for one in layers)]
        kernel = {1: torch.rnn_tanh, 3: torch.gru, 4: torch.lstm}[self.gates]
        # biases, one layer, no dropout, not in training, one direction, batch first
        found = cast(Any, kernel)(x, start, weights, True, 1, 0.0, False, False, True)
        return found[0], found[1:] if self.gates == 4 else found[1]

    def _step(self, x: Tensor, h: Tensor, *cell: Tensor) -> tuple[Tensor, ...]:
        """Return the next state for one token x (B, I), the state h (B, D) and the LSTM cell."""
        new, old = self.entering(x), self.staying(h)
        if self.gates == 1:
            return (torch.tanh(new + old),)
        if self.gates == 3:
            both = 2 * h.shape[1]
            reset, update = (new[:, :both] + old[:, :both]).sigmoid().chunk(2, 1)
            fresh = torch.addcmul(new[:, both:], reset, old[:, both:]).tanh()
            return (torch.lerp(fresh, h, update),)
        enter, keep, fresh, show = (new + old).chunk(4, 1)
        inner = torch.addcmul(keep.sigmoid() * cell[0], enter.sigmoid(), fresh.tanh())
        return show.sigmoid() * inner.tanh(), inner
