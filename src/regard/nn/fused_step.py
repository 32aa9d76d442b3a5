"""The fused step of a standard Transformer: all layers in one call, without Python in between.

A step of a small model on a CPU is dozens of tiny operations, whose overhead exceeds the
arithmetic. The functions here are compiled by TorchScript and run all of these operations in one
call. `nn.fused` collects the weights.

Shapes: B sentences, k beams per sentence, R = k * B rows, S length, D width, H heads, K head width,
I inputs, O outputs, V tokens. The memory is the encoder output.
"""

from typing import Optional

import torch
from torch import Tensor
from torch.nn.functional import gelu, scaled_dot_product_attention, silu


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
    `addmm` is not used, because TorchScript would decompose it, and it is not faster: it copies
    the bias first.
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


def add_linear(x: Tensor, h: Tensor, w: list[Tensor], i: int, packed: bool, tile: int) -> Tensor:
    """Return x + W h + b (R, D) for h (R, I), with the weights of `linear`. May overwrite x."""
    if packed:
        return x.addmm_(h, w[i]).add_(w[i + 1])
    return linear(h, w, i, packed, tile).add_(x)


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
    """Return the output (R, D) of the feed-forward branch whose eight weights start at w[i].

    May overwrite x.
    """
    h = normalize(x, norm, w[i], w[i + 1], eps) if pre else x
    h = activate(linear(h, w, i + 2, packed, tile), activation)
    x = add_linear(x, h, w, i + 5, packed, tile)
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
        x = add_linear(x, out.transpose(1, 2).reshape(R, D), w, 5, False, tile)
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
    and values are written at index `count`. keys, values: (B, H, S, K) per layer, of the memory;
    empty without cross-attention.
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
        x = add_linear(x, out.transpose(1, 2).reshape(R, D), w, 5, packed, tile)
        x = x if pre else normalize(x, norm, w[0], w[1], eps)
        if len(keys) > 0:
            h = normalize(x, norm, w[8], w[9], eps) if pre else x
            q = linear(h, w, 10, packed, tile).view(B, k, heads, K).transpose(1, 2)
            out = scaled_dot_product_attention(q, keys[i], values[i], bias)
            x = add_linear(x, out.transpose(1, 2).reshape(R, D), w, 13, packed, tile)
            x = x if pre else normalize(x, norm, w[8], w[9], eps)
        x = feed_forward(x, w, len(w) - 8, pre, norm, eps, activation, packed, tile)
    return x


def fill(
    x: Tensor,
    R: int,
    weights: list[list[Tensor]],
    keys: list[Tensor],
    values: list[Tensor],
    bias: Optional[Tensor],  # noqa: UP045, TorchScript reads it
    source_bias: Optional[Tensor],  # noqa: UP045
    heads: int,
    pre: bool,
    norm: str,
    eps: float,
    activation: str,
    tile: int,
) -> Tensor:
    """Return the vectors (R*T, D) after all layers of a parallel decoder, for embeddings (R*T, D).

    keys, values: (B, H, S, K) per layer, of the memory. bias: (R, 1, 1, T), source_bias:
    (B, 1, 1, S), -inf for padding, or None.
    """
    N, D = x.size(0), x.size(1)
    B, K = keys[0].size(0), D // heads
    for i, w in enumerate(weights):
        h = normalize(x, norm, w[0], w[1], eps) if pre else x
        qkv = linear(h, w, 2, False, tile).view(R, N // R, 3, heads, K).permute(2, 0, 3, 1, 4)
        out = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], bias)
        x = add_linear(x, out.transpose(1, 2).reshape(N, D), w, 5, False, tile)
        x = x if pre else normalize(x, norm, w[0], w[1], eps)
        h = normalize(x, norm, w[8], w[9], eps) if pre else x
        q = linear(h, w, 10, False, tile).view(B, N // B, heads, K).transpose(1, 2)
        out = scaled_dot_product_attention(q, keys[i], values[i], source_bias)
        x = add_linear(x, out.transpose(1, 2).reshape(N, D), w, 13, False, tile)
        x = x if pre else normalize(x, norm, w[8], w[9], eps)
        x = feed_forward(x, w, 16, pre, norm, eps, activation, False, tile)
    return x
