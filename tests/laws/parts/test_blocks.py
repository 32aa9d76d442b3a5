"""Invariants of every block of convolutional networks."""

import pytest
import torch

from regard.core.options import kinds_of
from regard.nn.convolution import BlockOptions, Blocks, MapShape, Trace
from tests.laws.unions import Tree, variants

IMAGE = MapShape(4, 9, 7)
TREES = [
    (kind, tree)
    for kind, one in kinds_of(Blocks).items()
    for tree in variants(one)  # type: ignore[arg-type]
]


def built(kind: str, tree: Tree) -> BlockOptions:
    """The block, 8 channels wide if it has a width."""
    return kinds_of(Blocks)[kind].model_validate(tree).with_width(8)  # type: ignore[attr-defined]


each_block = pytest.mark.parametrize(
    ("kind", "tree"), TREES, ids=[f"{kind}-{i}" for i, (kind, _) in enumerate(TREES)]
)


@each_block
def test_layers_describe_the_module(kind: str, tree: Tree) -> None:
    """Output shape, channels and parameters of the description are those of the module."""
    block = built(kind, tree)
    layers = block.layers(Trace(IMAGE), kind)
    module = block.build(IMAGE).eval()
    out = module(torch.randn(2, *IMAGE))
    assert tuple(out.shape[1:]) == layers[-1].after.shape
    assert layers[-1].after.shape.channels == (block.output or IMAGE.channels)
    parameters = sum(weight.numel() for weight in module.parameters())
    assert sum(layer.parameters for layer in layers) == parameters


@each_block
def test_rows_do_not_depend_on_each_other(kind: str, tree: Tree) -> None:
    torch.manual_seed(0)
    module = built(kind, tree).build(IMAGE).eval()
    x = torch.randn(3, *IMAGE)
    for row in range(3):
        assert torch.allclose(module(x)[row], module(x[row : row + 1])[0], atol=1e-5)


@each_block
def test_the_field_covers_what_the_output_reads(kind: str, tree: Tree) -> None:
    """No pixel outside the receptive field changes a cell, in the middle of a large image."""
    torch.manual_seed(0)
    shape = MapShape(4, 21, 21)
    block = built(kind, tree)
    field = block.layers(Trace(shape), kind)[-1].after.field
    x = torch.randn(1, *shape, requires_grad=True)
    out = block.build(shape).eval()(x)
    out[0, :, out.shape[2] // 2, out.shape[3] // 2].sum().backward()
    assert x.grad is not None
    rows = x.grad.abs().sum((0, 1, 3)).nonzero()
    assert int(rows.max() - rows.min()) + 1 <= field[0]


@each_block
def test_needs_batch_is_declared(kind: str, tree: Tree) -> None:
    """A module whose output in training depends on other rows declares it."""
    torch.manual_seed(0)
    block = built(kind, tree)
    module = block.build(IMAGE)
    if kind == "dropout":
        return
    x = torch.randn(3, *IMAGE)
    alone = module(x[:1])
    depends = not torch.allclose(module(x)[:1], alone, atol=1e-4)
    assert depends == any(getattr(part, "needs_batch", False) for part in module.modules())
