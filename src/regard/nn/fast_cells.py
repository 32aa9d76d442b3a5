"""Recurrent layers as plain functions of their weights, with less overhead than torch's modules.

Gates are a function of two terms: an input term W x + b and a state term U h. The input term does
not depend on the state, so it is computed for many inputs at once. On a CPU, torch's sigmoid takes
a third of the time of its tanh: tanh x = 2 sigmoid(2 x) - 1.

Shapes: R rows, S length, D width, G = number of gates * D.
"""

from collections.abc import Iterable
from typing import Optional

import torch
from torch import Tensor, nn

from regard.nn.fast import compiled
from regard.nn.recurrent import WEIGHTS, Hidden

KINDS = (nn.RNN, nn.GRU, nn.LSTM)


def tanh(x: Tensor) -> Tensor:
    """Return tanh(x), computed by the faster sigmoid for large tensors."""
    if x.numel() < 4096:
        return torch.tanh(x)
    return (2.0 * x).sigmoid_().mul_(2.0).sub_(1.0)


def advance(gates: Tensor, hidden: list[Tensor], weight: Tensor, bias: Tensor) -> list[Tensor]:
    """Return the next state, one or two tensors (R, D), given the input term of the gates (R, G).

    weight: U, (D, G). bias: (G,), bias of the state term, used for a GRU only. An LSTM has four
    gates, a GRU three, a plain RNN one. The weights of the cell gate of an LSTM are doubled, so
    that one sigmoid computes all four gates.
    """
    h = hidden[0]
    count = weight.size(1) // weight.size(0)
    if count == 4:
        enter, forget, half, leave = torch.addmm(gates, h, weight).sigmoid_().chunk(4, 1)
        c = torch.addcmul(forget * hidden[1] - enter, enter, half, value=2.0)
        return [leave * tanh(c), c]
    if count == 3:
        x_reset, x_update, x_new = gates.chunk(3, 1)
        reset, update, new = torch.addmm(bias, h, weight).chunk(3, 1)
        candidate = tanh(torch.addcmul(x_new, (x_reset + reset).sigmoid_(), new))
        return [torch.lerp(candidate, h, (x_update + update).sigmoid_())]
    return [tanh(torch.addmm(gates, h, weight))]


def read(
    gates: Tensor,
    parts: int,
    weight: Tensor,
    bias: Tensor,
    mask: Optional[Tensor],  # noqa: UP045, TorchScript reads it
    back: bool,
) -> Tensor:
    """Return the states (S, R, D) of a layer, given the input term of the gates (S, R, G).

    parts: tensors per state, 2 for an LSTM. back: read from right to left. The state is zero
    where the mask (S, R, 1) is False.
    """
    S, R, D = gates.size(0), gates.size(1), weight.size(0)
    hidden = [gates.new_zeros(R, D) for _ in range(parts)]
    found = gates.new_empty(S, R, D)
    for i in range(S):
        t = S - 1 - i if back else i
        hidden = advance(gates[t], hidden, weight, bias)
        if mask is not None:
            hidden = [part * mask[t] for part in hidden]
        found[t] = hidden[0]
    return found


class FastCell:
    """The weights of a layer: (in, G) for the input, (D, G) for the state, and biases."""

    def __init__(self, layer: nn.RNNBase) -> None:
        inputs, states, bias, more = (getattr(layer, name).detach() for name in WEIGHTS)
        self.width = layer.hidden_size
        count = len(bias) // self.width
        self.parts = 2 if count == 4 else 1
        scale = torch.ones_like(bias)
        if count == 4:
            scale[2 * self.width : 3 * self.width] = 2.0
        self.input, self.state = inputs.t() * scale, states.t() * scale
        self.bias = bias if count == 3 else (bias + more) * scale
        self.more = more  # used for a GRU only: its reset gate scales this bias

    def gates(self, x: Tensor) -> Tensor:
        """Return the input term (R, G) of the gates for inputs x (R, in)."""
        return torch.addmm(self.bias, x, self.input)

    def advance(self, gates: Tensor, hidden: Hidden) -> Hidden:
        """Return the next state, given the input term of the gates (R, G)."""
        return tuple(advance(gates, list(hidden), self.state, self.more))

    def read(self, gates: Tensor, mask: Tensor | None, back: bool) -> Tensor:
        """Return the states (S, R, D), given the input term of the gates (S, R, G)."""
        run = compiled(read)
        return run(gates, self.parts, self.state, self.more, mask, back)


def fast_cells(layers: Iterable[nn.Module]) -> list[FastCell] | None:
    """Return a FastCell per layer; None unless all layers are torch RNNs on a CPU."""
    stack = list(layers)
    if not all(type(layer) in KINDS for layer in stack):
        return None
    known = [layer for layer in stack if isinstance(layer, nn.RNNBase)]
    here = all(layer.weight_ih_l0.device.type == "cpu" for layer in known)
    return [FastCell(layer) for layer in known] if here else None
