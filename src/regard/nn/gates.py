"""Gates of a recurrent layer, recomputed because torch's kernels do not return them.

Shapes: B batch size, T length, I input width, D width.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.int8 import Int8Recurrent

Gates = dict[str, Tensor]


def gates(layer: nn.Module, x: Tensor, first: tuple[Tensor, ...] | None, out: Tensor) -> Gates:
    """Return the gates (B, T, D) of a layer with input x (B, T, I) and output out (B, T, D).

    first: the state (B, D) before the first token, for an LSTM also the cell. None: zeros.
    gru:  reset, update, new, with out = (1 - update) * new + update * (previous out)
    lstm: input, forget, output, and cell (the cell state), with out = output * tanh(cell)
    rnn:  no gates, thus an empty dictionary
    """
    enter, stay = _maps(layer)
    start = torch.zeros_like(out[:, 0]) if first is None else first[0]
    before = torch.cat([start.unsqueeze(1), out[:, :-1]], 1)  # (B, T, D)
    new, old = enter(x), stay(before)  # (B, T, gates * D)
    count = new.shape[-1] // out.shape[-1]
    if count == 3:
        (reset, update, fresh), (reset_old, update_old, fresh_old) = (
            new.chunk(3, -1),
            old.chunk(3, -1),
        )
        opened = (reset + reset_old).sigmoid()
        kept = (update + update_old).sigmoid()
        return {"reset": opened, "update": kept, "new": (fresh + opened * fresh_old).tanh()}
    if count == 4:
        let_in, keep, fresh, shown = (new + old).chunk(4, -1)
        let_in, keep = let_in.sigmoid(), keep.sigmoid()
        offered = let_in * fresh.tanh()
        cell = torch.zeros_like(start) if first is None else first[1]
        cells = _sums(keep, offered, cell)
        return {"input": let_in, "forget": keep, "cell": cells, "output": shown.sigmoid()}
    return {}


def _sums(keep: Tensor, offered: Tensor, cell: Tensor) -> Tensor:
    """Return the LSTM cell state (B, T, D) after each token, from the initial cell (B, D)."""
    cells = []
    for kept, added in zip(keep.unbind(1), offered.unbind(1), strict=True):
        cell = kept * cell + added
        cells.append(cell)
    return torch.stack(cells, 1)


def _maps(layer: nn.Module) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """Return the linear maps of the input and of the previous state, each for all gates."""
    if isinstance(layer, Int8Recurrent):
        return layer.entering, layer.staying
    assert isinstance(layer, nn.RNNBase)
    enter, stay, enter_bias, stay_bias = layer.all_weights[0]
    return lambda x: F.linear(x, enter, enter_bias), lambda h: F.linear(h, stay, stay_bias)
