"""Attention within blocks of queries and their own keys, for sparse kernels.

A sequence is divided into blocks of queries. Each block has its own list of keys, such as the
block and its neighbors, so the cost grows with the number of blocks.

Shapes: R rows, H heads, n positions, N blocks of all rows, s queries per block, w keys per block,
K head width.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.nn.kernels.kernel import AttentionMask, full_precision, real_keys
from regard.nn.positions import Position


def pad_blocks(x: Tensor, size: int, dim: int = 2) -> Tensor:
    """Return x with zeros (False for masks) appended, so that `size` divides its length."""
    missing = -x.shape[dim] % size
    if not missing:
        return x
    return torch.cat([x, x.new_zeros(*x.shape[:dim], missing, *x.shape[dim + 1 :])], dim)


def query_blocks(x: Tensor, size: int) -> Tensor:
    """Return (R, H, n, K) as blocks (R * blocks, H, s, K), padded with zeros."""
    blocks = pad_blocks(x, size).unflatten(2, (-1, size))  # (R, H, blocks, s, K)
    return blocks.transpose(1, 2).flatten(0, 1)


def join_blocks(x: Tensor, rows: int, length: int) -> Tensor:
    """Undo `query_blocks`: return blocks (R * blocks, H, s, K) as (R, H, n, K)."""
    return x.unflatten(0, (rows, -1)).transpose(1, 2).flatten(2, 3)[:, :, :length]


def neighbors(x: Tensor, size: int, before: int, after: int) -> Tensor:
    """Return each block of (R, H, n, K) with blocks before and after it, (R * blocks, H, w, K)."""
    x = F.pad(pad_blocks(x, size), (0, 0, before * size, after * size))
    windows = x.unfold(2, (before + 1 + after) * size, size)  # (R, H, blocks, K, w)
    return windows.permute(0, 2, 1, 4, 3).flatten(0, 1)


def neighbor_positions(
    length: int, size: int, before: int, after: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return the positions (blocks, s) of queries and (blocks, w) of `neighbors`.

    Positions below 0 or from `length` on do not exist.
    """
    first = torch.arange(0, length, size, device=device)[:, None]
    at_q = first + torch.arange(size, device=device)
    at_k = first + torch.arange(-before * size, (1 + after) * size, device=device)
    return at_q, at_k


def exists(at_k: Tensor, length: int, real: Tensor | None) -> Tensor:
    """Return which positions at_k (..., w) exist and are not padding, (R|1, ..., w).

    real: (R, n), True unless padding; None: no padding.
    """
    inside = (at_k >= 0) & (at_k < length)
    if real is None:
        return inside.unsqueeze(0)
    return inside & real[:, at_k.clamp(0, length - 1)]


def attend_blocks(
    blocks: Sequence[Tensor], visible: Tensor, positions: Position, at_q: Tensor, at_k: Tensor
) -> Tensor:
    """Return softmax attention (N, H, s, K) of queries to the keys of their block.

    blocks: queries (N, H, s, K), keys and values (N, H, w, K). visible: (N|1, s, w). at_q: the
    positions (s,) of the queries of the first block. at_k: positions (N|1, w) of keys, relative to
    that block. A query without visible keys gets a finite result.
    """
    q, k, v = blocks
    visible = (visible | ~visible.any(-1, keepdim=True)).unsqueeze(1)  # (N|1, 1, s, w)
    mask = visible
    if positions.biases:
        bias = positions.bias(q, at_q, at_k)  # (N|1, H, s, w)
        assert bias is not None
        mask = bias.masked_fill(~visible, float("-inf"))
    if q.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        q, k, v = full_precision(q), full_precision(k), full_precision(v)
    with torch.autocast(q.device.type, enabled=False):
        mask = mask.to(q.dtype) if mask.is_floating_point() else mask
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def with_first(out: Tensor, blocks: Sequence[Tensor], mask: AttentionMask) -> Tensor:
    """Return the output (R, H, n, K), with first positions that attend to all positions.

    blocks: queries (R, H, count, K) of the first positions, keys and values (R, H, n, K) of all.
    """
    count, at = blocks[0].shape[2], torch.arange(out.shape[2], device=out.device)
    real = real_keys(blocks[1], mask)[:, None]
    first = attend_blocks(blocks, real, mask.positions, at[:count], at[None])
    return torch.cat([first, out[:, :, count:]], 2)
