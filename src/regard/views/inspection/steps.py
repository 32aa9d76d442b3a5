"""The answer symbol by symbol, with what else was likely.

R symbols, V vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from regard.views.inspection.value import OutputStep

OTHERS = 5  # runners-up of each symbol


def steps_of(
    chances: Tensor, chosen: Sequence[int], name: Callable[[int], str], never: Sequence[int] = ()
) -> list[OutputStep]:
    """A step for each row of probabilities (R, V); never: what is no runner-up."""
    places = torch.tensor(list(chosen), device=chances.device)
    own = chances.gather(1, places[:, None]).squeeze(1).tolist()
    left = chances.clone()
    left[:, list(never)] = -1.0
    left.scatter_(1, places[:, None], -1.0)
    best = left.topk(min(OTHERS, left.shape[1]))
    found = []
    for symbol, p, ids, ps in zip(
        chosen, own, best.indices.tolist(), best.values.tolist(), strict=True
    ):
        others = tuple((name(id), q) for id, q in zip(ids, ps, strict=True) if q >= 0)
        found.append(OutputStep(name(symbol), p, others))
    return found


def renamed(steps: Sequence[OutputStep], names: Sequence[str]) -> list[OutputStep]:
    """The steps under the names that their symbols came with: unknown ones keep theirs."""
    return [replace(step, symbol=name) for step, name in zip(steps, names, strict=True)]
