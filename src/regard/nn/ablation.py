"""Ablation of attention heads: the outputs of ablated heads are set to zero.

Shapes: B sentences, k beams per sentence, R = k * B rows, H heads.
"""

import contextlib

from torch import Tensor, nn

from regard.core.context import Slot
from regard.core.errors import UserError

# The ablated heads in this thread: by module id, a mask (1, H) or (B, H), True if ablated.
ABLATED: Slot[dict[int, Tensor]] = Slot("ablated", {})


def ablating(heads: dict[int, Tensor]) -> contextlib.AbstractContextManager[None]:
    """Zero these heads in this thread inside the block.

    heads: by module id, a mask (1, H) for all sentences or (B, H) per sentence, True if ablated.
    Heads that an enclosing block ablates stay ablated.
    """
    before = ABLATED.get()
    both = {part: mask | before[part] for part, mask in heads.items() if part in before}
    return ABLATED.set(before | heads | both)


def is_ablating() -> bool:
    """Return whether any head is ablated in this thread."""
    return bool(ABLATED.get())


def zero_ablated(part: nn.Module, outputs: Tensor, sentences: int | None = None) -> Tensor:
    """Return the outputs (R, H, ...) of attention heads, with zeros for ablated heads.

    sentences: B, if it differs from R. The mask has one row, or one row per sentence.
    """
    ablated = ABLATED.get()
    mask = ablated.get(id(part)) if ablated else None
    if mask is None:
        return outputs
    rows = sentences or len(outputs)
    if len(mask) not in (1, rows):
        raise UserError(
            f"ablate: expected a mask with {rows} rows, found {len(mask)}",
            help="pass one row per example, or a list of heads to ablate in all examples",
        )
    mask = mask.to(outputs.device)
    if len(mask) > 1:
        mask = mask.repeat_interleave(len(outputs) // rows, 0)
    return outputs.masked_fill(mask.view(*mask.shape, *[1] * (outputs.dim() - 2)), 0.0)
