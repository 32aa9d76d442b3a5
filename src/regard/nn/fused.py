"""The fused step of a standard Transformer: all layers in one call, without Python in between.

A step of a small model on a CPU is dozens of tiny operations, whose overhead exceeds the
arithmetic. The functions here are compiled by TorchScript and run all of these operations in one
call. They support softmax attention, layer or RMS norm (pre or post), two-layer feed-forward
networks, and float or int8 weights. A supported module returns its weights from a method `fused`.
If a module of a stack is not supported, the modules run one by one.

Shapes: B sentences, k beams per sentence, R = k * B rows, S length, D width, H heads, K head width,
I inputs, O outputs, V tokens. The memory is the encoder output.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention, silu

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


def normalize(x: Tensor, kind: str, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """Return x (R, D) with each vector normalized. kind: layer, rms or none."""
    if kind == "layer":
        return torch.layer_norm(x, [x.size(1)], weight, bias, eps)
    if kind == "rms":
        return torch.rms_norm(x, [x.size(1)], weight, eps)
    return x


def linear(x: Tensor, w: list[Tensor], i: int, packed: bool, tile: int) -> Tensor:
    """Return W x + b (R, O) for x (R, I), with W = w[i], b = w[i + 1] and int8 scales w[i + 2].

    packed: W is stored as (I, O). tile: the number of int8 weights to convert at a time.
    `addmm` is not used, because TorchScript would decompose it.
    """
    weight, bias = w[i], w[i + 1]
    if packed:
        return torch.mm(x, weight).add_(bias)
    if weight.dtype != torch.int8:
        return torch.nn.functional.linear(x, weight, bias)
    values = weight.t()  # (I, O)
    if values.numel() <= tile:
        product = torch.mm(x, values.to(x.dtype))
    else:
        tiles = values.split(max(1, tile // values.size(0)), 1)
        product = torch.cat([torch.mm(x, part.to(x.dtype)) for part in tiles], 1)
    return torch.addcmul(bias, product, w[i + 2])


def activate(x: Tensor, kind: str) -> Tensor:
    """Apply the activation function `kind` to x."""
    if kind == "relu":
        return torch.relu_(x)
    if kind in ["tanh", "sigmoid"]:
        return torch.tanh_(x) if kind == "tanh" else torch.sigmoid_(x)
    return gelu(x) if kind == "gelu" else silu(x)


def feed_forward(
    x: Tensor,
    w: list[Tensor],
    i: int,
    pre: bool,
    norm: str,
    eps: float,
    activation: str,
    packed: bool,
    tile: int,
) -> Tensor:
    """Return the output (R, D) of the feed-forward branch whose eight weights start at w[i]."""
    h = normalize(x, norm, w[i], w[i + 1], eps) if pre else x
    h = activate(linear(h, w, i + 2, packed, tile), activation)
    x = linear(h, w, i + 5, packed, tile).add_(x)
    return x if pre else normalize(x, norm, w[i], w[i + 1], eps)


def encode(
    x: Tensor,
    B: int,
    weights: list[list[Tensor]],
    bias: Optional[Tensor],  # noqa: UP045, TorchScript reads it
    heads: int,
    pre: bool,
    norm: str,
    eps: float,
    activation: str,
    tile: int,
) -> Tensor:
    """Return the vectors (B*S, D) after all encoder layers, for embeddings x (B*S, D).

    weights: `FusedLayer.weights` of each layer. bias: (B, 1, 1, S), -inf for padding, or None.
    """
    R, D = x.size(0), x.size(1)
    for w in weights:
        h = normalize(x, norm, w[0], w[1], eps) if pre else x
        qkv = linear(h, w, 2, False, tile).view(B, R // B, 3, heads, D // heads)
        qkv = qkv.permute(2, 0, 3, 1, 4)
        out = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], bias)
        x = linear(out.transpose(1, 2).reshape(R, D), w, 5, False, tile).add_(x)
        x = x if pre else normalize(x, norm, w[0], w[1], eps)
        x = feed_forward(x, w, 8, pre, norm, eps, activation, False, tile)
    return x


def decode(
    tokens: Tensor,
    table: Tensor,
    rows: Tensor,
    scale: float,
    position: Tensor,
    weights: list[list[Tensor]],
    caches: list[Tensor],
    keys: list[Tensor],
    values: list[Tensor],
    mask: Optional[Tensor],  # noqa: UP045, TorchScript reads it
    bias: Optional[Tensor],  # noqa: UP045
    count: int,
    heads: int,
    pre: bool,
    norm: str,
    eps: float,
    activation: str,
    packed: bool,
    tile: int,
) -> Tensor:
    """Return the vectors (R, D) of tokens (R,) after all decoder layers, before the final norm.

    table, rows, scale: the fields of a `FusedTable`. position: (1, D), added to the embeddings.
    weights: `FusedLayer.weights` of each layer. caches: (2, B, H, room, K) per layer; the new keys
    and values are written at index `count`. keys, values: (B, H, S, K) per layer, of the memory.
    mask: the mask of caches that beams share, or None. bias: (B, 1, 1, S), -inf for padding.
    """
    x = torch.embedding(table, tokens)
    if table.dtype == torch.int8:
        x = x.to(rows.dtype).mul_(rows[tokens].unsqueeze(-1))
    x = x * scale + position
    R, D = x.size(0), x.size(1)
    B, K = caches[0].size(1), D // heads
    k = R // B
    for i, w in enumerate(weights):
        h = normalize(x, norm, w[0], w[1], eps) if pre else x
        qkv = linear(h, w, 2, packed, tile).view(B, k, 3, heads, K).permute(2, 0, 3, 1, 4)
        both = caches[i]
        both.narrow(3, count, k).copy_(qkv[1:])
        past = both.narrow(3, 0, count + k)
        out = scaled_dot_product_attention(qkv[0], past[0], past[1], mask)
        x = linear(out.transpose(1, 2).reshape(R, D), w, 5, packed, tile).add_(x)
        x = x if pre else normalize(x, norm, w[0], w[1], eps)
        h = normalize(x, norm, w[8], w[9], eps) if pre else x
        q = linear(h, w, 10, packed, tile).view(B, k, heads, K).transpose(1, 2)
        out = scaled_dot_product_attention(q, keys[i], values[i], bias)
        x = linear(out.transpose(1, 2).reshape(R, D), w, 13, packed, tile).add_(x)
        x = x if pre else normalize(x, norm, w[8], w[9], eps)
        x = feed_forward(x, w, 16, pre, norm, eps, activation, packed, tile)
    return x
