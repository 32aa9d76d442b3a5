"""Layers whose weights are int8: a quarter of the memory. What flows between them stays fp32.

Only weights are rounded. If activations were rounded too, a difference of 1e-7, as it comes from
padding or from another batch, could tip a number over to its neighbor, a whole step of 1/127
away, so that the answer to a text would hang on the texts beside it.
O outputs, I inputs, V tokens, D width, B rows, T length.
"""

from abc import ABC, abstractmethod
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.nn.capture_hooks import record_input
from regard.nn.fused import TILE, FusedTable, LinearWeights

LARGEST = 127  # of int8 on both sides of zero


class Int8Matrix(nn.Module):
    """(O, I) numbers in int8 with a scale a row: values * scale, each off by half a scale at most.

    An embedding and the head that is tied to it share one.
    """

    values: Tensor  # (O, I), int8
    scale: Tensor  # (O,)

    def __init__(self, values: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.register_buffer("values", values)
        self.register_buffer("scale", scale)

    @classmethod
    def of(cls, weight: Tensor) -> "Int8Matrix":
        """A matrix rounded; the largest number of each row keeps its value."""
        weight = weight.detach().float()
        largest = weight.abs().amax(1)  # (O,)
        scale = torch.where(largest > 0, largest / LARGEST, 1.0)
        return cls((weight / scale[:, None]).round().to(torch.int8), scale)

    def whole(self) -> Tensor:
        """(O, I) in fp32."""
        return self.values.to(self.scale.dtype).mul_(self.scale[:, None])

    def rows(self, places: Tensor) -> Tensor:
        """(...) places to rows (..., I) in fp32."""
        found = F.embedding(places, self.values).to(self.scale.dtype)
        return found.mul_(self.scale[places].unsqueeze(-1))

    def times(self, x: Tensor, bias: Tensor | None = None) -> Tensor:
        """(..., I) to (..., O): the matrix times x, and the bias. It is never whole in fp32."""
        values, scale = self.values.t(), self.scale  # (I, O)
        if values.numel() <= TILE:
            product = x @ values.to(scale.dtype)
        else:
            tiles = values.split(max(1, TILE // len(values)), 1)
            product = torch.cat([x @ tile.to(scale.dtype) for tile in tiles], -1)
        return product.mul_(scale) if bias is None else torch.addcmul(bias, product, scale)


class Weights(ABC):
    """Where the numbers of a model are: in itself or in a file. known: the matrices so far; the
    same one for the same weight, as an embedding and a tied head have it."""

    def __init__(self) -> None:
        self.known: dict[int, Int8Matrix] = {}

    def matrix(self, weight: Tensor) -> Int8Matrix:
        """A weight matrix of the model in int8."""
        if id(weight) not in self.known:
            self.known[id(weight)] = self.read_matrix(weight)
        return self.known[id(weight)]

    @abstractmethod
    def read_matrix(self, weight: Tensor) -> Int8Matrix:
        """A weight matrix of the model in int8, at its first use."""

    @abstractmethod
    def tensor(self, weight: Tensor) -> Tensor:
        """A weight or a table of the model that stays as it is."""


class Int8(nn.Module):
    """What layers with int8 weights have in common: they cannot be trained."""

    def train(self, mode: bool = True) -> "Int8":
        """Refuses to be trained."""
        if mode:
            raise UserError(
                "a model with int8 weights cannot be trained: steps of training are smaller than "
                "those between two weights; load it without quantize, train it, quantize it again"
            )
        return super().train(False)


class Int8Linear(Int8):
    """W x + b."""

    def __init__(self, matrix: Int8Matrix, bias: Tensor | None) -> None:
        super().__init__()
        self.matrix = matrix
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)
        self.out_features, self.in_features = matrix.values.shape

    def forward(self, x: Tensor) -> Tensor:
        """(..., I) to (..., O)."""
        return self.matrix.times(x, self.bias)

    def fused(self) -> LinearWeights | None:
        """Its numbers for the fused step."""
        if self.bias is None:
            return None
        return [self.matrix.values, self.bias.detach(), self.matrix.scale]


class Int8Embedding(Int8):
    """Tokens to vectors, multiplied by a factor."""

    def __init__(self, matrix: Int8Matrix, scale: float) -> None:
        super().__init__()
        self.matrix = matrix
        self.scale = scale

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) to (B, T, D)."""
        return record_input(self, self.matrix.rows(tokens).mul_(self.scale))

    def fused(self) -> FusedTable:
        """Its numbers for the fused step."""
        return FusedTable(self.matrix.values, self.matrix.scale, self.scale)


class Int8Recurrent(Int8):
    """One recurrent layer from left to right, called as torch's are with the batch first.

    A single step is computed here: on a CPU torch's own way to one step of an LSTM costs more
    than the step. For longer rows the weights are fp32 as long as torch's kernel runs.
    """

    def __init__(self, entering: Int8Linear, staying: Int8Linear) -> None:
        super().__init__()
        self.entering = entering  # of the input
        self.staying = staying  # of the state before
        self.gates = staying.out_features // staying.in_features  # rnn 1, gru 3, lstm 4

    def forward(self, x: Tensor, start: Any = None) -> tuple[Tensor, Any]:
        """x (B, T, I) to (B, T, D), and the state after it: (1, B, D), two of them for the LSTM."""
        if start is None:
            nothing = x.new_zeros(1, len(x), self.staying.in_features)
            start = (nothing, nothing) if self.gates == 4 else nothing
        if x.shape[1] != 1:
            return self._rows(x, start)
        states = start if self.gates == 4 else (start,)
        after = self._step(x[:, 0], *(state[0] for state in states))
        end = tuple(state.unsqueeze(0) for state in after)
        return after[0].unsqueeze(1), end if self.gates == 4 else end[0]

    def _rows(self, x: Tensor, start: Any) -> tuple[Tensor, Any]:
        """All tokens by torch's kernel."""
        layers = (self.entering, self.staying)
        weights = [*(one.matrix.whole() for one in layers), *(one.bias for one in layers)]
        kernel = {1: torch.rnn_tanh, 3: torch.gru, 4: torch.lstm}[self.gates]
        # biases, one layer, no dropout, not in training, one direction, batch first
        found = cast(Any, kernel)(x, start, weights, True, 1, 0.0, False, False, True)
        return found[0], found[1:] if self.gates == 4 else found[1]

    def _step(self, x: Tensor, h: Tensor, *cell: Tensor) -> tuple[Tensor, ...]:
        """One token: x (B, I) and the state before (B, D) to the state after."""
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
