"""Networks of blocks: their default, and how their widths are set. B images, C channels."""

from collections.abc import Sequence

from torch import Tensor, nn

from regard.nn.capture_hooks import record_maps
from regard.nn.convolution.block import BlockOptions, build_blocks, trace_blocks
from regard.nn.convolution.conv import Conv
from regard.nn.convolution.residual import ResidualOptions
from regard.nn.convolution.sizes import Layer, MapShape, Trace

SIZED = "blocks: expected at least one conv, residual, inception or dense block"


class BlockStack(nn.Module):
    """A convolutional network: blocks that follow one another."""

    def __init__(self, blocks: Sequence[BlockOptions], shape: MapShape) -> None:
        super().__init__()
        self.layers = network_layers(blocks, shape)  # as `regard describe` prints them
        self.blocks = build_blocks(blocks, shape)
        ends = [network_layers(blocks[:count], shape)[-1] for count in range(1, len(blocks) + 1)]
        self.traces = [layer.after for layer in ends]  # after each block

    def forward(self, images: Tensor) -> Tensor:
        """Return the cells (B, H', W', D) of the last map for images (B, H, W, C)."""
        x = images.permute(0, 3, 1, 2)  # channels last in memory, which is faster
        for block in self.blocks:
            x = block(x)
            x = record_maps(block, x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return x.permute(0, 2, 3, 1)


def default_blocks(width: int) -> list[BlockOptions]:
    """Return a small residual network with three map sizes (He et al. 2016, 4.2)."""
    quarter, half = max(1, width // 4), max(1, width // 2)
    return [
        Conv(width=quarter, norm="batch"),
        ResidualOptions(width=quarter),
        ResidualOptions(width=half, stride=2),
        ResidualOptions(width=width, stride=2),
    ]


def sized_blocks(blocks: Sequence[BlockOptions], width: int) -> list[BlockOptions]:
    """Return the blocks with this width if their own is unset."""
    return [block.with_width(width) for block in blocks]


def network_layers(blocks: Sequence[BlockOptions], shape: MapShape) -> list[Layer]:
    """Return the layers for images of this shape. Raise UserError if one does not fit."""
    return trace_blocks(blocks, Trace(shape))


def last_output(blocks: Sequence[BlockOptions]) -> int | None:
    """Return the output channels of the last block that sets them, if known."""
    sized = [block for block in blocks if hasattr(block, "width")]
    return sized[-1].output if sized else None


def check_blocks(blocks: Sequence[BlockOptions] | None, width: int | None) -> None:
    """Raise ValueError unless a block sets the channels, and their number is `width`, if set."""
    if blocks is None:
        return
    if not any(hasattr(block, "width") for block in blocks):
        raise ValueError(SIZED)
    last = last_output(blocks)
    if last and width and last != width:
        raise ValueError(
            f"width {width} differs from the {last} output channels of the last block; "
            "omit one of them"
        )
