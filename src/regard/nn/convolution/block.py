"""The interface of blocks, the parts of a convolutional network. B images, C, H, W of a map."""

from collections.abc import Sequence
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.options import Options
from regard.nn.convolution.sizes import Layer, MapShape, Trace
from regard.nn.feedforward import ACTIVATIONS, Activation

MapNormKind = Literal["none", "batch"]
MapActivation = Literal[Activation, "none"]
MOMENTUM, EPS = 0.1, 1e-5


class BlockOptions(Options):
    """Base class of block options.

    `layers` and `build` follow from the same settings; property tests compare them.
    """

    kind: str

    @property
    def output(self) -> int | None:
        """Return the number of output channels; None: that of the input."""
        return None

    def with_width(self, width: int) -> "BlockOptions":
        """Return the block with this number of channels if its own is unset."""
        if getattr(self, "width", 0) is None:
            return self.model_copy(update={"width": width})
        return self

    def layers(self, trace: Trace, name: str) -> list[Layer]:
        """Return the layers of the block on this map; the last one has its output.

        Raise UserError, which names the layer, if a window does not fit in the map.
        """
        raise NotImplementedError

    def build(self, shape: MapShape) -> nn.Module:
        """Return the module, which maps (B, C, H, W) to (B, C', H', W')."""
        raise NotImplementedError


class MapNorm(nn.Module):
    """Batch norm of each channel over all cells of a batch (Ioffe and Szegedy 2015).

    needs_batch: a row depends on the other rows of its micro-batch, in training.
    momentum: weight of a batch in the running statistics, which evaluation uses.
    """

    needs_batch = True

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.momentum = MOMENTUM
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.running_mean: Tensor
        self.running_variance: Tensor
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_variance", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Return normalized maps (B, C, H, W)."""
        return F.batch_norm(
            x,
            self.running_mean,
            self.running_variance,
            self.weight,
            self.bias,
            self.training,
            self.momentum,
            EPS,
        )


class Activate(nn.Module):
    """An activation function, or none."""

    def __init__(self, kind: MapActivation) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: Tensor) -> Tensor:
        """Return f(x)."""
        return x if self.kind == "none" else ACTIVATIONS[self.kind](x)

    def extra_repr(self) -> str:
        return self.kind


def init_layer(layer: nn.Conv2d | nn.Linear, activation: MapActivation) -> None:
    """Initialize with variance 2 / inputs before a rectifier (He et al. 2015), else 1 / inputs."""
    rectifies = activation in ("relu", "gelu", "silu")
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu" if rectifies else "linear")
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def trace_blocks(blocks: Sequence[BlockOptions], trace: Trace) -> list[Layer]:
    """Return all layers of a network. Blocks are named by index and kind, as `2 pool`."""
    found: list[Layer] = []
    for number, block in enumerate(blocks, 1):
        found += block.layers(trace, f"{number} {block.kind}")
        trace = found[-1].after
    return found


def build_blocks(blocks: Sequence[BlockOptions], shape: MapShape) -> nn.ModuleList:
    """Return the modules of a network for images of this shape."""
    found: list[nn.Module] = []
    trace_blocks(blocks, Trace(shape))  # raises UserError, which names the layer
    for block in blocks:
        found.append(block.build(shape))
        shape = block.layers(Trace(shape), block.kind)[-1].after.shape
    return nn.ModuleList(found)
