"""Sizes of feature maps: the output size of a layer, its receptive field and its cost.

C channels, H height, W width of a map.
"""

from dataclasses import dataclass
from typing import NamedTuple

from regard.core.errors import UserError


def output_size(n: int, f: int, p: int = 0, s: int = 1, where: str = "layer") -> int:
    """Return floor((n + 2p - f) / s) + 1: how many windows of f cells fit in n cells.

    p: padding at each end. s: stride. Raise UserError, which names the layer, if none fits.
    """
    for name, value, least in (("n", n, 1), ("f", f, 1), ("p", p, 0), ("s", s, 1)):
        if value < least:
            raise UserError(f"{where}: {name}: expected at least {least}, found {value}")
    if f > n + 2 * p:
        padded = f" ({n} and padding {p} at each end)" if p else ""
        raise UserError(
            f"{where}: a window of size {f} does not fit in a map of size {n + 2 * p}{padded}",
            help="use larger images, fewer layers with a stride, a smaller size, or more padding",
        )
    return (n + 2 * p - f) // s + 1


class MapShape(NamedTuple):
    """The shape of a feature map or an image."""

    channels: int
    height: int
    width: int

    def __str__(self) -> str:
        return f"{self.height} x {self.width} x {self.channels}"

    @property
    def size(self) -> int:
        """Return the number of values."""
        return self.channels * self.height * self.width


class Window(NamedTuple):
    """The window of a layer: its size, stride and padding, the same in both directions."""

    size: int
    stride: int = 1
    padding: int = 0


class Trace(NamedTuple):
    """A map on its way through a network.

    field: receptive field (H, W) of a cell, in pixels. jump: pixels between neighboring cells.
    start: first pixel of the field of the first cell; negative in the padding.
    """

    shape: MapShape
    field: tuple[int, int] = (1, 1)
    jump: tuple[int, int] = (1, 1)
    start: tuple[int, int] = (0, 0)

    def slide(self, window: Window, channels: int, where: str) -> "Trace":
        """Return the map after a window slides over this one. Raise UserError if it cannot."""
        size, stride, padding = window
        height, width = (output_size(n, size, padding, stride, where) for n in self.shape[1:])
        f, j = self.field, self.jump
        field = (f[0] + (size - 1) * j[0], f[1] + (size - 1) * j[1])
        start = (self.start[0] - padding * j[0], self.start[1] - padding * j[1])
        jump = (j[0] * stride, j[1] * stride)
        return Trace(MapShape(channels, height, width), field, jump, start)

    def collapse(self, channels: int) -> "Trace":
        """Return the single cell after a layer that reads the whole map."""
        (_, height, width), f, j, start = self
        field = (f[0] + (height - 1) * j[0], f[1] + (width - 1) * j[1])
        return Trace(MapShape(channels, 1, 1), field, (j[0] * height, j[1] * width), start)

    def join(self, others: "list[Trace]", channels: int) -> "Trace":
        """Return the map after parallel branches of equal size, of which this is the first."""
        fields = [trace.field for trace in (self, *others)]
        field = (max(f[0] for f in fields), max(f[1] for f in fields))
        starts = [trace.start for trace in (self, *others)]
        start = (min(s[0] for s in starts), min(s[1] for s in starts))
        return Trace(self.shape._replace(channels=channels), field, self.jump, start)


@dataclass(frozen=True)
class Layer:
    """One layer of a network, as `regard describe` prints it.

    after: its output. parameters: trained weights. operations: multiply-adds per image.
    """

    name: str
    what: str
    after: Trace
    parameters: int = 0
    operations: int = 0
