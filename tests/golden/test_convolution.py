"""Convolutional networks against formulas, torch.nn and counts from papers."""

import random

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from regard.core.errors import UserError
from regard.nn.convolution import (
    BlockStack,
    MapNorm,
    MapShape,
    Trace,
    build_blocks,
    output_size,
    trace_blocks,
)
from regard.nn.convolution.conv import Conv
from regard.nn.convolution.dense import Dense
from regard.nn.convolution.inception import Inception
from regard.nn.convolution.pool import MapPool
from regard.nn.convolution.residual import ResidualOptions


@pytest.mark.parametrize(
    ("n", "f", "p", "s", "expected"),
    [(227, 11, 0, 4, 55), (28, 3, 1, 1, 28), (28, 2, 0, 2, 14), (224, 7, 3, 2, 112)],
)
def test_output_size_of_textbook_examples(n: int, f: int, p: int, s: int, expected: int) -> None:
    assert output_size(n, f, p, s) == expected


def test_output_size_equals_torch() -> None:
    chance = random.Random(0)
    for _ in range(100):
        f, p, s = chance.randint(1, 7), chance.randint(0, 3), chance.randint(1, 4)
        n = chance.randint(max(1, f - 2 * p), 30)
        out = nn.Conv2d(1, 1, f, s, p, device="meta")(torch.empty(1, 1, n, n, device="meta"))
        assert output_size(n, f, p, s) == out.shape[-1]


def test_a_window_that_does_not_fit_is_named() -> None:
    blocks = [Conv(width=4, size=5, padding=0), MapPool(), Conv(width=4, size=5, padding=0)]
    with pytest.raises(UserError, match=r"3 conv: a window of size 5 does not fit in .* size 2"):
        trace_blocks(blocks, Trace(MapShape(1, 8, 8)))
    with pytest.raises(UserError, match="n: expected at least 1, found 0"):
        output_size(0, 1)


def test_receptive_fields() -> None:
    """Two 3 x 3 layers see 5 x 5 and three see 7 x 7; a stride doubles later growth."""
    convs = [Conv(width=1) for _ in range(3)]
    shape = Trace(MapShape(1, 32, 32))
    assert [layer.after.field[0] for layer in trace_blocks(convs, shape)] == [3, 5, 7]
    pooled = [Conv(width=1, size=5), MapPool(), Conv(width=1, size=5), MapPool()]
    assert [layer.after.field[0] for layer in trace_blocks(pooled, shape)] == [5, 6, 14, 16]


def test_receptive_field_is_what_changes_the_output() -> None:
    torch.manual_seed(0)
    image = torch.zeros(1, 1, 24, 24, requires_grad=True)
    linear = [
        Conv(width=2, size=5, padding=0, activation="none"),
        MapPool(mode="mean"),
        Conv(width=2, padding=0, activation="none"),
    ]
    trace = trace_blocks(linear, Trace(MapShape(1, 24, 24)))[-1].after
    x: torch.Tensor = image
    for block in build_blocks(linear, MapShape(1, 24, 24)):
        x = block(x)
    x[0, :, 3, 3].sum().backward()
    assert image.grad is not None
    rows = image.grad[0, 0].abs().sum(1).nonzero()
    assert int(rows.max() - rows.min()) + 1 == trace.field[0]
    assert int(rows.min()) == trace.start[0] + 3 * trace.jump[0] == 6


def test_receptive_fields_start_in_the_padding() -> None:
    """By hand: 3 x 3 with padding starts at -1; the next one, after a stride of 2, at -1 - 2."""
    stack = BlockStack([Conv(width=1, stride=2), Conv(width=1), MapPool()], MapShape(1, 16, 16))
    assert [(one.start[0], one.jump[0], one.field[0]) for one in stack.traces] == [
        *((-1, 2, 3), (-3, 2, 7), (-3, 4, 9)),
    ]


def test_conv_equals_torch() -> None:
    torch.manual_seed(0)
    ours = Conv(width=6, size=3, stride=2, padding=1, groups=3).build(MapShape(3, 9, 9))
    x = torch.randn(2, 3, 9, 9)
    expected = F.relu(F.conv2d(x, ours.conv.weight, ours.conv.bias, 2, 1, groups=3))
    assert torch.equal(ours(x), expected)


def test_conv_equals_a_tied_dense_layer() -> None:
    """A fully connected layer with shared and zeroed weights is a convolution."""
    torch.manual_seed(0)
    conv = Conv(width=1, size=2, padding=0, activation="none").build(MapShape(1, 3, 3))
    matrix = torch.zeros(4, 9)
    for row in range(2):
        for column in range(2):
            for i in range(2):
                for j in range(2):
                    weight = conv.conv.weight[0, 0, i, j]
                    matrix[2 * row + column, 3 * (row + i) + column + j] = weight
    x = torch.randn(5, 1, 3, 3)
    assert torch.allclose(conv(x).flatten(1), x.flatten(1) @ matrix.T, atol=1e-6)


def test_a_shifted_image_has_a_shifted_map() -> None:
    torch.manual_seed(0)
    conv = Conv(width=3).build(MapShape(1, 12, 12))
    image = torch.zeros(1, 1, 12, 12)
    image[..., 4:8, 4:8] = torch.randn(4, 4)
    assert torch.allclose(conv(image.roll(1, 3)), conv(image).roll(1, 3), atol=1e-6)


def test_map_norm_equals_torch() -> None:
    torch.manual_seed(0)
    ours, theirs = MapNorm(3), nn.BatchNorm2d(3)
    for _ in range(3):
        x = torch.randn(4, 3, 5, 5) * 2 + 1
        assert torch.equal(ours(x), theirs(x))
    assert torch.equal(ours.eval()(x), theirs.eval()(x))
    assert torch.equal(ours.running_variance, theirs.running_var)


def test_maximum_pooling_commutes_with_relu() -> None:
    x = torch.randn(2, 3, 6, 6)
    pool = MapPool().build(MapShape(3, 6, 6))
    assert torch.equal(F.relu(pool(x)), pool(F.relu(x)))


def test_a_residual_block_with_zero_weights_is_the_identity() -> None:
    block = ResidualOptions(width=4, repeat=2).build(MapShape(4, 6, 6)).eval()
    for weight in block.parameters():
        nn.init.zeros_(weight)
    x = torch.rand(2, 4, 6, 6)  # not negative, as the output of a ReLU
    assert torch.equal(block(x), x)
    plain = ResidualOptions(width=4, residual=False).build(MapShape(4, 6, 6)).eval()
    for weight in plain.parameters():
        nn.init.zeros_(weight)
    assert not plain(x).any()


def test_parameters_by_hand() -> None:
    """One 3 x 3 x 3 filter: 27 weights and a bias. Two 3 x 3 layers: 18 C^2 weights, not 25 C^2."""
    rgb = Trace(MapShape(3, 100, 100))
    assert trace_blocks([Conv(width=1)], rgb)[0].parameters == 28
    assert trace_blocks([Dense(width=1000)], rgb)[0].operations == 30_000_000
    c = 16
    at = Trace(MapShape(c, 8, 8))
    two = sum(layer.parameters - c for layer in trace_blocks([Conv(width=c)] * 2, at))
    one = trace_blocks([Conv(width=c, size=5)], at)[0].parameters - c
    assert (two, one) == (18 * c * c, 25 * c * c)


def test_inception_3a_has_the_parameters_of_the_paper() -> None:
    """Szegedy et al. 2015, table 1: 28 x 28 x 256 outputs, 159 K parameters, 128 M operations."""
    block = Inception(branches=(64, 96, 128, 16, 32, 32))
    layers = block.layers(Trace(MapShape(192, 28, 28)), "3a")
    assert layers[-1].after.shape == MapShape(256, 28, 28)
    assert sum(layer.parameters for layer in layers) // 1024 == 159
    assert sum(layer.operations for layer in layers) / 1e6 == pytest.approx(128, abs=1)
