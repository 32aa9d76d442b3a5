"""Recurrent layers with one batch-first interface.

Shapes: B batch size, T or S length, D width, L layers.
"""

from functools import partial
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from regard.data.tensors.padded import Padded
from regard.nn.capture_hooks import record_hidden, reversed_order
from regard.nn.dropout import Dropout
from regard.nn.gates import gates

Cell = Literal["rnn", "gru", "lstm"]
CELLS: dict[str, type[nn.RNN | nn.GRU | nn.LSTM]] = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
STEPS: dict[type[nn.Module], Any] = {
    nn.RNN: torch.rnn_tanh_cell,
    nn.GRU: torch.gru_cell,
    nn.LSTM: torch.lstm_cell,
}
WEIGHTS = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
Hidden = tuple[Tensor, ...]  # (h,) or for the LSTM (h, c); each (B, L, D)


class Recurrence(nn.Module):
    """A stack of recurrent layers that read from left to right.

    rnn:  h = tanh(W x + U h + b) (Elman 1990)
    gru:  update and reset gates (Cho et al. 2014)
    lstm: input, forget and output gates with a cell (Hochreiter and Schmidhuber 1997)
    Layers after the first have dropout and a residual connection (Wu et al. 2016).
    """

    def __init__(self, cell: Cell, inputs: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        stack = [
            CELLS[cell](inputs if i == 0 else width, width, batch_first=True) for i in range(layers)
        ]
        for layer in stack:
            _initialize(layer, width, gates=4 if cell == "lstm" else 1)
        self.layers = nn.ModuleList(stack)
        self.parts = 2 if cell == "lstm" else 1
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, hidden: Hidden | None = None) -> tuple[Tensor, Hidden]:
        """Return the outputs (B, T, D) for x (B, T, inputs), and the final state of all layers."""
        if hidden is not None and x.shape[1] == 1 and not torch.is_grad_enabled():
            return self._one(x[:, 0], hidden)
        last: list[tuple[Tensor, ...]] = []
        for i, layer in enumerate(self.layers):
            start = None
            if hidden is not None:
                parts = [part[:, i].unsqueeze(0).contiguous() for part in hidden]  # (1, B, D)
                start = tuple(parts) if self.parts == 2 else parts[0]
            read = self.dropout(x) if i > 0 else x
            out, end = layer(read, start)
            first = None if hidden is None else tuple(part[:, i] for part in hidden)
            record_hidden(layer, out, partial(gates, layer, read, first, out))
            last.append(tuple(end) if self.parts == 2 else (end,))
            x = out + x if i > 0 else out
        return x, tuple(torch.cat(part).transpose(0, 1) for part in zip(*last, strict=True))

    def sides(self) -> list[list[nn.Module]]:
        """Return the layers, one list per direction."""
        return [list(self.layers)]

    def _one(self, x: Tensor, hidden: Hidden) -> tuple[Tensor, Hidden]:
        """Return the result of `forward` for one token x (B, inputs) with less overhead."""
        last: list[tuple[Tensor, ...]] = []
        for i, layer in enumerate(self.layers):
            before = tuple(part[:, i] for part in hidden)
            read = self.dropout(x) if i > 0 else x
            after = one_step(layer, read, before)
            out = after[0].unsqueeze(1)
            record_hidden(layer, out, partial(gates, layer, read.unsqueeze(1), before, out))
            last.append(after)
            x = after[0] + x if i > 0 else after[0]
        return x.unsqueeze(1), tuple(torch.stack(part, 1) for part in zip(*last, strict=True))


def one_step(layer: nn.Module, x: Tensor, hidden: Hidden) -> Hidden:
    """Return the state (B, D) of a recurrent layer after one input x (B, inputs)."""
    if type(layer) not in STEPS:
        start = [part.unsqueeze(0) for part in hidden]
        _, end = layer(x.unsqueeze(1), tuple(start) if len(start) == 2 else start[0])
        return tuple(part[0] for part in (end if isinstance(end, tuple) else (end,)))
    weights = cast(list[Tensor], [getattr(layer, name) for name in WEIGHTS])
    if len(hidden) == 2:
        return torch.lstm_cell(x, hidden, weights[0], weights[1], weights[2], weights[3])
    return (STEPS[type(layer)](x, hidden[0], *weights),)


class Bidirectional(nn.Module):
    """Two stacks, one per direction, each of half the width (Schuster and Paliwal 1997).

    The outputs of both directions are concatenated after each layer, so the next layer reads both.
    """

    def __init__(self, cell: Cell, inputs: int, width: int, layers: int, dropout: float) -> None:
        super().__init__()
        sizes = [inputs] + [width] * (layers - 1)
        self.forwards = nn.ModuleList(Recurrence(cell, n, width // 2, 1, 0.0) for n in sizes)
        self.backwards = nn.ModuleList(Recurrence(cell, n, width // 2, 1, 0.0) for n in sizes)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the outputs (B, S, D) for x (B, S, inputs). mask: (B, S), True unless padding."""
        flip = reverse_indices(mask).unsqueeze(-1)  # (B, S, 1)
        for i, (ahead, back) in enumerate(zip(self.forwards, self.backwards, strict=True)):
            inputs = self.dropout(x) if i > 0 else x
            left, _ = ahead(inputs)  # (B, S, D/2)
            with reversed_order(flip):
                right, _ = back(inputs.gather(1, flip.expand_as(inputs)))
            both = torch.cat([left, right.gather(1, flip.expand_as(right))], -1)  # (B, S, D)
            x = both + x if i > 0 else both
        return x

    def sides(self) -> list[list[nn.Module]]:
        """Return the left-to-right layers and the right-to-left layers."""
        stacks = [
            [cast(Recurrence, one) for one in side] for side in (self.forwards, self.backwards)
        ]
        return [[layer for one in side for layer in one.layers] for side in stacks]


def reverse_indices(mask: Tensor) -> Tensor:
    """Return the indices (B, S) that reverse the real tokens of each row; padding stays."""
    indices = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    mirrored = mask.sum(1, keepdim=True) - 1 - indices
    return torch.where(mask, mirrored, indices)


def final_states(x: Padded, both: bool) -> Tensor:
    """Return the state (B, D) after the last real token.

    both: whether x has two directions. The backward direction ends at the first token.
    """
    last = (x.mask.sum(1) - 1).clamp(min=0)[:, None, None].expand(-1, 1, x.data.shape[-1])
    final = x.data.gather(1, last).squeeze(1)  # (B, D)
    if not both:
        return final
    half = x.data.shape[-1] // 2
    return torch.cat([final[:, :half], x.data[:, 0, half:]], -1)


def _initialize(layer: nn.RNNBase, width: int, gates: int) -> None:
    """Set recurrent weights orthogonal, input weights by Glorot, biases 0, LSTM forget bias 1."""
    for name, weight in layer.named_parameters():
        if "weight_hh" in name:
            for block in weight.data.split(width):
                nn.init.orthogonal_(block)
        elif "weight_ih" in name:
            for block in weight.data.split(width):
                nn.init.xavier_uniform_(block)
        else:
            nn.init.zeros_(weight)
            if gates == 4 and "bias_ih" in name:
                weight.data[width : 2 * width] = 1.0
