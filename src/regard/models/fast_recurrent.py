"""Fast paths of recurrent encoders and decoders on a CPU: the same outputs with less overhead.

The decoder computes tanh(W [h; context]), where the context is a weighted mean of the memory (the
encoder output). So the memory is multiplied by W once, before the first step.

B sentences, k beams per sentence, R = k * B rows, S source length, D width, G = gates * D.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from regard.data.tensors.padded import Padded
from regard.data.tensors.state import State
from regard.data.tensors.tree import Tree
from regard.models.fast_decoder import FastDecoder
from regard.nn.attention_scores import FastScore
from regard.nn.fast import claim, fast, padding_bias, warming_up
from regard.nn.fast_cells import FastCell, tanh
from regard.nn.recurrent import Hidden, final_states

MAX_TABLE = 1 << 22  # maximum number of values in a table of token gates


def token_gates(embed: nn.Module, cell: FastCell) -> Callable[[Tensor], Tensor]:
    """Return a function that maps tokens (...) to W x + b of the gates (..., G).

    It is a table lookup for small vocabularies.
    """
    read, table = fast(embed), claim(embed, "fused")
    if table is not None and table.weight.is_floating_point():
        tokens = torch.arange(len(table.weight))
        if len(tokens) * cell.bias.numel() <= MAX_TABLE:
            gates = cell.gates(read(tokens))
            return lambda tokens: embedding(tokens, gates)
    return lambda tokens: cell.gates(read(tokens).flatten(0, -2)).view(*tokens.shape, -1)


class FastRecurrentEncoder:
    """A recurrent encoder of tokens.

    sides: the layers of the forward direction and, if bidirectional, of the backward direction.
    """

    def __init__(self, embed: nn.Module, sides: Sequence[Sequence[FastCell]]) -> None:
        self.layers = list(zip(*sides, strict=True))
        self.both = len(sides) == 2
        self.gates = [token_gates(embed, cell) for cell in self.layers[0]]
        with warming_up():
            gates = self.layers[0][0].bias.new_zeros(1, 1, self.layers[0][0].bias.numel())
            _read(self.layers[0], [gates for _ in self.layers[0]], None)

    def __call__(self, source: Padded) -> Padded:
        """Return the states (B, S, D) for tokens (B, S)."""
        tokens = source.data.t()  # (S, B)
        mask = None if bool(source.mask.all()) else source.mask.t().unsqueeze(-1)  # (S, B, 1)
        x = _read(self.layers[0], [gates(tokens) for gates in self.gates], mask)
        for cells in self.layers[1:]:
            gates = [cell.gates(x.flatten(0, 1)).view(*tokens.shape, -1) for cell in cells]
            x = x + _read(cells, gates, mask)
        found = Padded(x.transpose(0, 1).contiguous(), source.mask)
        return found._replace(summary=final_states(found, self.both))


def _read(cells: Iterable[FastCell], gates: list[Tensor], mask: Tensor | None) -> Tensor:
    """Return the states (S, B, D) of a layer, of both directions if there are two cells.

    gates: W x + b of the gates (S, B, G) per cell. mask: (S, B, 1), None without padding.
    """
    left, *right = zip(cells, gates, strict=True)
    states = [left[0].read(left[1], None, False)]
    states += [cell.read(part, mask, True) for cell, part in right]
    return torch.cat(states, -1)


def advance_layers(
    cells: Sequence[FastCell], gates: Tensor, hidden: Hidden
) -> tuple[Tensor, Hidden]:
    """Return the output (R, D) of all layers, and their next state (R, L, D).

    gates: the input term of the gates of the first layer (R, G).
    """
    after = [cells[0].advance(gates, tuple(part[:, 0] for part in hidden))]
    x = after[0][0]
    for i, cell in enumerate(cells[1:], 1):
        after.append(cell.advance(cell.gates(x), tuple(part[:, i] for part in hidden)))
        x = x + after[i][0]
    return x, tuple(torch.stack(part, 1) for part in zip(*after, strict=True))


class FastRecurrentLM(FastDecoder):
    """The decoder of a recurrent language model."""

    def __init__(self, embed: nn.Module, cells: list[FastCell]) -> None:
        self.cells, self.read = cells, token_gates(embed, cells[0])

    def start(self, memory: Padded | None, past: Tree) -> State:
        """Return the state before the first token."""
        return State({"bias": None}, past)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        hidden, gates = state.past["hidden"], self.read(tokens[:, 0])
        if hidden is None:
            first = self.cells[0]
            zeros = gates.new_zeros(len(gates), len(self.cells), first.width)
            hidden = (zeros,) * first.parts
        x, hidden = advance_layers(self.cells, gates, hidden)
        return x, State(state.memory, {"hidden": hidden})


class FastRecurrentDecoder(FastDecoder):
    """A recurrent decoder. first: returns the initial hidden state for a memory and R rows."""

    def __init__(
        self,
        embed: nn.Module,
        cells: list[FastCell],
        score: FastScore,
        join: nn.Linear,
        input_feeding: bool,
        first: Callable[[Padded, int], Hidden],
    ) -> None:
        self.cells, self.score, self.input_feeding, self.first = cells, score, input_feeding, first
        width, first_cell = cells[0].width, cells[0]
        first_cell.input, self.fed = first_cell.input.split(
            [len(first_cell.input) - input_feeding * width, input_feeding * width]
        )
        self.read = token_gates(embed, first_cell)
        weight = join.weight.detach()
        self.state, self.context, self.bias = weight[:, :width].t(), weight[:, width:], join.bias

    def start(self, memory: Padded | None, past: Tree) -> State:
        """Return the state before the first token, with keys and projected values."""
        assert memory is not None
        keys, values = self.score.start(memory)
        bias = None if keys is None else padding_bias(memory.mask, memory.data)
        parts: dict[str, Any] = {
            "keys": keys,
            "values": linear(values, self.context, self.bias),
            "bias": None if bias is None else bias[:, 0],  # (B, 1, S)
        }
        return State({"encoded": memory, **parts}, past)

    def step(self, tokens: Tensor, state: State) -> tuple[Tensor, State]:
        hidden, last = state.past["hidden"], state.past["last"]
        if hidden is None:
            hidden = self.first(state.memory["encoded"], len(tokens))
        gates = self.read(tokens[:, 0])
        if last is not None:
            gates = gates.addmm(last[:, 0], self.fed)
        x, hidden = advance_layers(self.cells, gates, hidden)
        out = self._attend(x, state)
        fed = out.unsqueeze(1) if self.input_feeding else None
        return out, State(state.memory, {"hidden": hidden, "last": fed, "score": None})

    def _attend(self, x: Tensor, state: State) -> Tensor:
        """Return tanh(W [h; context]) (R, D) for hidden vectors x (R, D)."""
        values, bias, keys = (state.memory[name] for name in ("values", "bias", "keys"))
        B, k = len(values), len(x) // len(values)
        if keys is None:
            found = values.expand(B, k, -1)
        else:
            scores = self.score.scores(x, keys)
            weights = (scores if bias is None else scores.add_(bias)).softmax(-1)
            found = torch.bmm(weights, values)
        return tanh(torch.addmm(found.reshape(x.shape), x, self.state))
