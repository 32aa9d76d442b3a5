"""Convolutional networks as lists of blocks. `Blocks` is the union of their options."""

from typing import Annotated

from pydantic import Field

from regard.nn.convolution.block import BlockOptions, MapNorm, build_blocks, trace_blocks
from regard.nn.convolution.conv import Conv
from regard.nn.convolution.dense import Dense, DropoutBlock
from regard.nn.convolution.inception import Inception
from regard.nn.convolution.network import (
    BlockStack,
    check_blocks,
    default_blocks,
    last_output,
    network_layers,
    sized_blocks,
)
from regard.nn.convolution.pool import GlobalPool, MapPool
from regard.nn.convolution.residual import ResidualOptions
from regard.nn.convolution.sizes import Layer, MapShape, Trace, output_size

__all__ = [
    "BlockOptions",
    "BlockStack",
    "Blocks",
    "Conv",
    "Layer",
    "MapNorm",
    "MapShape",
    "ResidualOptions",
    "Trace",
    "build_blocks",
    "check_blocks",
    "default_blocks",
    "last_output",
    "network_layers",
    "output_size",
    "sized_blocks",
    "trace_blocks",
]

Blocks = Annotated[
    Conv | MapPool | GlobalPool | ResidualOptions | Inception | Dense | DropoutBlock,
    Field(discriminator="kind"),
]
