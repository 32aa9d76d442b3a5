"""The door through which attention is seen.

B rows, k beams, T target length, S source length, H heads.
"""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from regard.errors import UserError


@dataclass
class Seen:
    """What was looked at while watching. cross: (k*B, H, T, S) of each layer, first to last."""

    cross: list[Tensor] = field(default_factory=list)

    def alignment(self) -> Tensor:
        """(k*B, T, S): the attention to the source, the mean over the heads of the last layer."""
        if not self.cross:
            raise UserError("this model has no attention to its source, so there is no alignment")
        return self.cross[-1].mean(1)

    def join(self, count: int) -> None:
        """Makes the last `count` views, of one symbol after the other, one view of them all."""
        if self.cross:
            self.cross[-count:] = [torch.cat(self.cross[-count:], 2)]


_here = threading.local()


@contextlib.contextmanager
def watching() -> Iterator[Seen]:
    """Within, in this thread, attention is computed in the open and kept."""
    before, _here.seen = watched(), Seen()
    try:
        yield _here.seen
    finally:
        _here.seen = before


def watched() -> Seen | None:
    """Where attention is kept, if anybody is watching."""
    return getattr(_here, "seen", None)
