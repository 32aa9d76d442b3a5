"""Heads that are ablated: what changes without them?

B rows, H heads, T length, K head width.
"""

import contextlib

from torch import Tensor, nn

from regard.core.context import Slot
from regard.core.errors import UserError

# The ablated heads of a thread: a mask (1, H) or (B, H) by the id of their module.
ABLATED: Slot[dict[int, Tensor]] = Slot("ablated", {})


def ablating(heads: dict[int, Tensor]) -> contextlib.AbstractContextManager[None]:
    """Within, in this thread, these heads find nothing: (1, H) or (B, H), True is ablated.

    Those that were ablated around it stay so.
    """
    before = ABLATED.get()
    both = {part: mask | before[part] for part, mask in heads.items() if part in before}
    return ABLATED.set(before | heads | both)


def is_ablating() -> bool:
    """Whether any head is ablated."""
    return bool(ABLATED.get())


def zero_ablated(part: nn.Module, found: Tensor, sentences: int | None = None) -> Tensor:
    """What the heads of an attention found (R, H, ...), with zeros where they are ablated.

    sentences: B, where there are R = k * B rows; a mask then has a row for each sentence.
    """
    ablated = ABLATED.get()
    mask = ablated.get(id(part)) if ablated else None
    if mask is None:
        return found
    rows = sentences or len(found)
    if len(mask) not in (1, rows):
        raise UserError(
            f"ablate: heads are given for {len(mask)} rows, but {rows} rows came; give as "
            "many as the batch has, or a list of heads, which holds for all rows"
        )
    mask = mask.to(found.device)
    if len(mask) > 1:
        mask = mask.repeat_interleave(len(found) // rows, 0)
    return found.masked_fill(mask.view(*mask.shape, *[1] * (found.dim() - 2)), 0.0)
