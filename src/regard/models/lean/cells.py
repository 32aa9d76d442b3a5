"""Recurrent layers as plain functions of one symbol for each row, their weights taken out once.

What an input adds to the gates does not depend on the state, so it is computed for many inputs at
once or, for the symbols of a small vocabulary, looked up. And torch's sigmoid takes a third of the
time of its tanh on a CPU: tanh x = 2 sigmoid(2 x) - 1.

R rows, D width, G = gates * D.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from regard.models.frontend import Embedding
from regard.models.lean.bare import Map, bare_embedding
from regard.nn.recurrent import WEIGHTS, Hidden

MOST = 1 << 22  # numbers of a table of symbols


class BareCell:
    """A layer. `parts`: how many vectors its state has."""

    parts = 1

    def __init__(self, layer: nn.RNNBase) -> None:
        self.width = layer.hidden_size
        weights = [getattr(layer, name).detach() for name in WEIGHTS]
        sides = (weights[0], weights[2]), (weights[1], weights[3])
        (self.input, self.bias), (self.state, self.state_bias) = self._joined(*sides)

    def _joined(self, *sides: tuple[Tensor, Tensor]) -> list[tuple[Tensor, Tensor]]:
        """The maps (in, G) of inputs and of states, each with what it adds (G,)."""
        (inputs, bias), (states, more) = sides
        return [(inputs.t(), bias + more), (states.t(), torch.zeros_like(more))]

    def gates(self, x: Tensor) -> Tensor:
        """What inputs (R, in) add to the gates: (R, G)."""
        return torch.addmm(self.bias, x, self.input)

    def __call__(self, gates: Tensor, hidden: Hidden) -> Hidden:
        """The state after an input that adds these gates (R, G)."""
        return (tanh_(torch.addmm(gates, hidden[0], self.state)),)


class BareGru(BareCell):
    """Reset, update, new. The state's part of the last one goes through the reset gate."""

    def _joined(self, *sides: tuple[Tensor, Tensor]) -> list[tuple[Tensor, Tensor]]:
        return [(weight.t(), bias) for weight, bias in sides]

    def __call__(self, gates: Tensor, hidden: Hidden) -> Hidden:
        (h,), D = hidden, self.width
        own = torch.addmm(self.state_bias, h, self.state)
        opened = (gates[:, : 2 * D] + own[:, : 2 * D]).sigmoid_()
        new = tanh_(torch.addcmul(gates[:, 2 * D :], opened[:, :D], own[:, 2 * D :]))
        return (torch.lerp(new, h, opened[:, D:]),)


class BareLstm(BareCell):
    """Input, forget, cell, output; the weights of the cell's gate are doubled, for its tanh."""

    parts = 2

    def _joined(self, *sides: tuple[Tensor, Tensor]) -> list[tuple[Tensor, Tensor]]:
        (inputs, bias), (states, more) = super()._joined(*sides)
        scale = torch.ones_like(bias)
        scale[2 * self.width : 3 * self.width] = 2.0
        return [(inputs * scale, bias * scale), (states * scale, more)]

    def __call__(self, gates: Tensor, hidden: Hidden) -> Hidden:
        h, c = hidden
        enter, forget, half, leave = torch.addmm(gates, h, self.state).sigmoid_().chunk(4, 1)
        c = torch.addcmul(forget * c - enter, enter, half, value=2.0)
        return leave * tanh_(c.clone()), c


def tanh_(x: Tensor) -> Tensor:
    """tanh, in place."""
    return x.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)


KINDS: dict[Any, Any] = {nn.RNN: BareCell, nn.GRU: BareGru, nn.LSTM: BareLstm}


def bare_cells(layers: Iterable[nn.Module]) -> list[BareCell] | None:
    """The layers of a stack, or None where one of them is of no plain kind."""
    found = [KINDS[type(one)](one) if type(one) in KINDS else None for one in layers]
    return [one for one in found if one is not None] if None not in found else None


def bare_reader(module: nn.Module, cell: BareCell) -> Map:
    """What symbols (...) add to the gates (..., G) of the layer that reads their vectors."""
    embed = bare_embedding(module)
    if type(module) is Embedding and len(module.weight) * cell.bias.numel() <= MOST:
        table = cell.gates(embed(torch.arange(len(module.weight))))
        return lambda symbols: embedding(symbols, table)
    return lambda symbols: cell.gates(embed(symbols).flatten(0, -2)).view(*symbols.shape, -1)
