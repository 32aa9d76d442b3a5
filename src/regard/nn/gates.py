"""The gates of a recurrent layer in the open: torch's kernels keep them to themselves.

B rows, T length, I inputs, D width.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn.int8 import Int8Recurrent

Gates = dict[str, Tensor]


def gates(layer: nn.Module, x: Tensor, first: tuple[Tensor, ...] | None, out: Tensor) -> Gates:
    """The gates (B, T, D) of a layer that read x (B, T, I) and gave out (B, T, D).

    first: the state (B, D) before the first token, for the LSTM with its cell; None: zeros.
    gru:  reset, update, new: out = (1 - update) * new + update * (out before)
    lstm: input, forget, output, and the cell itself after each token: out = output * tanh(cell)
    A plain recurrent layer has none.
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
    """(B, T, D): the cell after each token, of which a share is kept and to which is added."""
    cells = []
    for kept, added in zip(keep.unbind(1), offered.unbind(1), strict=True):
        cell = kept * cell + added
        cells.append(cell)
    return torch.stack(cells, 1)


def _maps(layer: nn.Module) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """What a layer computes of its input, and of the state before: all gates side by side."""
    if isinstance(layer, Int8Recurrent):
        return layer.entering, layer.staying
    assert isinstance(layer, nn.RNNBase)
    enter, stay, enter_bias, stay_bias = layer.all_weights[0]
    return lambda x: F.linear(x, enter, enter_bias), lambda h: F.linear(h, stay, stay_bias)
