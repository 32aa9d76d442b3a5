"""Heads that are silent: what changes without them?

B rows, H heads, T length, K head width.
"""

import contextlib
import threading
from collections.abc import Iterator

from torch import Tensor, nn

from regard.core.errors import UserError


class _Here(threading.local):
    """The silent heads of a thread: a mask (1, H) or (B, H) by the id of their module."""

    silent: dict[int, Tensor] = {}  # noqa: RUF012, replaced and never changed


_here = _Here()


@contextlib.contextmanager
def silencing(heads: dict[int, Tensor]) -> Iterator[None]:
    """Within, in this thread, these heads find nothing: (1, H) or (B, H), True is silent.

    Those that were silent around it stay so.
    """
    before = _here.silent
    both = {part: mask | before[part] for part, mask in heads.items() if part in before}
    _here.silent = before | heads | both
    try:
        yield
    finally:
        _here.silent = before


def silenced() -> bool:
    """Whether any head is silent."""
    return bool(_here.silent)


def hush(part: nn.Module, found: Tensor) -> Tensor:
    """What the heads of an attention found (B, H, ...), with zeros where they are silent."""
    mask = _here.silent.get(id(part)) if _here.silent else None
    if mask is None:
        return found
    if len(mask) not in (1, len(found)):
        raise UserError(
            f"silence: heads are given for {len(mask)} rows, but {len(found)} rows came; give as "
            "many as the batch has, or a list of heads, which holds for all rows"
        )
    mask = mask.to(found.device)
    return found.masked_fill(mask.view(*mask.shape, *[1] * (found.dim() - 2)), 0.0)
