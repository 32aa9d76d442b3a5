"""The weights of a standard Transformer for the fused step (`nn.fused_step`).

The fused step supports softmax attention, layer or RMS norm (pre or post), two-layer feed-forward
networks, and float or int8 weights. A supported module returns its weights from a method `fused`.
If a module of a stack is not supported, the modules run one by one.

Shapes: D width, I inputs, O outputs, V tokens. The memory is the encoder output.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.nn.fast import claim
from regard.nn.norms import FusedNorm
from regard.nn.residual import Residual

TILE = 1 << 19  # int8 weights converted to fp32 at a time: 2 MB, which fit into the CPU cache
EMPTY = torch.empty(0)  # placeholder for a missing tensor

LinearWeights = list[Tensor]  # of W x + b: W (O, I), b (O,), and int8 scales (O,)


class FusedTable(NamedTuple):
    """An embedding. weight: (V, D). rows: int8 scales (V,). scale: factor of all vectors."""

    weight: Tensor
    rows: Tensor
    scale: float


class FusedBranch(NamedTuple):
    """A residual branch: two linear layers with attention or an activation between them."""

    first: LinearWeights
    second: LinearWeights
    heads: int = 0
    activation: str = ""
    keys: LinearWeights | None = None  # projection of the memory, for cross-attention


class Style(NamedTuple):
    """Settings that all layers of a stack share. pre: pre-norm, otherwise post-norm."""

    heads: int
    pre: bool
    norm: str
    eps: float
    activation: str


class FusedLayer(NamedTuple):
    """The weights of a layer."""

    style: Style
    weights: list[Tensor]  # eight per branch: two of the norm, three of each linear layer
    keys: LinearWeights  # projection of the memory, for cross-attention; otherwise empty


def fused_linear(module: nn.Module) -> LinearWeights | None:
    """Return the weights of a linear layer; None if it is not supported."""
    if type(module) is nn.Linear:
        weight, bias = module.weight.detach(), module.bias
        return None if bias is None else [weight, bias.detach(), EMPTY]
    found: LinearWeights | None = claim(module, "fused")
    return found


def fused_branch(
    first: nn.Module, second: nn.Module, heads: int = 0, activation: str = ""
) -> FusedBranch | None:
    """Return a branch of two linear layers; None if one is not supported."""
    one, other = fused_linear(first), fused_linear(second)
    return None if one is None or other is None else FusedBranch(one, other, heads, activation)


def fused_layer(branches: Sequence[tuple[Residual, nn.Module]]) -> FusedLayer | None:
    """Return a layer of residual branches; None if one is not supported or their styles differ."""
    weights: list[Tensor] = []
    residuals = [claim(residual, "fused") for residual, _ in branches]
    parts: list[Any] = [claim(part, "fused") for _, part in branches]
    if None in residuals or None in parts:
        return None
    for (_, norm), part in zip(residuals, parts, strict=True):
        _, weight, bias, _ = norm_weights(norm)
        weights += [weight, bias, *part.first, *part.second]
    styles = {(pre, norm.kind, norm.eps) for pre, norm in residuals}
    heads = {part.heads for part in parts} - {0}
    activations = {part.activation for part in parts} - {""}
    if any(len(found) != 1 for found in (styles, heads, activations)):
        return None
    keys = [weight for part in parts for weight in part.keys or ()]
    return FusedLayer(Style(heads.pop(), *styles.pop(), activations.pop()), weights, keys)


def fused_stack(layers: Sequence[Any]) -> list[FusedLayer] | None:
    """Return the layers of a stack; None if one is not supported or their styles differ."""
    found = [claim(layer, "fused") for layer in layers]
    known = [layer for layer in found if layer is not None]
    alike = len({layer.style for layer in known}) == 1 and len(known) == len(found)
    return known if alike else None


def norm_weights(norm: FusedNorm) -> tuple[str, Tensor, Tensor, float]:
    """Return a norm as arguments of `normalize`."""
    weight, bias = (EMPTY if w is None else w for w in (norm.weight, norm.bias))
    return norm.kind, weight, bias, norm.eps
