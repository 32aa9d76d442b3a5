"""A step through all layers of a Transformer decoder in one call, without Python in between.

R = k * B rows, D width, H heads, K head width.
"""

from typing import Any, Optional

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from regard.inputs.frontend import Embedding
from regard.models.lean.compiling import compiled
from regard.models.transformer import TransformerDecoder
from regard.nn.kernels.cache import Cache
from regard.nn.layers import DecoderLayer
from regard.nn.norms import LayerNorm
from regard.nn.residual import PreNorm


def decode(
    symbols: Tensor,
    table: Tensor,
    place: Tensor,
    scale: float,
    weights: list[list[Tensor]],
    caches: list[Tensor],
    keys: list[Tensor],
    values: list[Tensor],
    mask: Optional[Tensor],  # noqa: UP045, TorchScript reads it
    bias: Optional[Tensor],  # noqa: UP045
    count: int,
    heads: int,
    pre: bool,
    eps: float,
) -> Tensor:
    """Symbols (R,) to vectors (R, D) after all layers, before the last norm.

    table: (V, D), their vectors, times `scale`; place: (1, D), what is added for their place. The
    new keys and values go into the caches, from `count` on.
    """
    x = torch.embedding(table, symbols) * scale + place
    R, D = x.size(0), x.size(1)
    B, K = caches[0].size(1), D // heads
    k = R // B
    for i, w in enumerate(weights):
        h = torch.layer_norm(x, [D], w[0], w[1], eps) if pre else x
        qkv = torch.mm(h, w[2]).add_(w[3]).view(B, k, 3, heads, K).permute(2, 0, 3, 1, 4)
        both = caches[i]
        both.narrow(3, count, k).copy_(qkv[1:])
        seen = both.narrow(3, 0, count + k)
        out = scaled_dot_product_attention(qkv[0], seen[0], seen[1], mask)
        x = torch.mm(out.transpose(1, 2).reshape(R, D), w[4]).add_(w[5]).add_(x)
        x = x if pre else torch.layer_norm(x, [D], w[0], w[1], eps)
        h = torch.layer_norm(x, [D], w[6], w[7], eps) if pre else x
        q = torch.mm(h, w[8]).add_(w[9]).view(B, k, heads, K).transpose(1, 2)
        out = scaled_dot_product_attention(q, keys[i], values[i], bias)
        x = torch.mm(out.transpose(1, 2).reshape(R, D), w[10]).add_(w[11]).add_(x)
        x = x if pre else torch.layer_norm(x, [D], w[6], w[7], eps)
        h = torch.layer_norm(x, [D], w[12], w[13], eps) if pre else x
        h = torch.relu_(torch.mm(h, w[14]).add_(w[15]))
        x = torch.mm(h, w[16]).add_(w[17]).add_(x)
        x = x if pre else torch.layer_norm(x, [D], w[12], w[13], eps)
    return x


class Script:
    """All layers of a decoder as one function of a symbol for each row."""

    def __init__(
        self, decoder: TransformerDecoder, embedding: Embedding, weights: list[list[Tensor]]
    ) -> None:
        first = decoder.layers[0]
        assert isinstance(first, DecoderLayer) and isinstance(first.attend.norm, LayerNorm)
        self.weights, self.heads = weights, first.attention.heads
        self.pre, self.eps = isinstance(first.attend, PreNorm), first.attend.norm.eps
        self.table, self.scale = embedding.weight.detach(), embedding.scale
        self.positions = decoder.positions
        self._places: dict[int, Tensor] = {}
        self._run = compiled(decode)

    def __call__(
        self,
        symbols: Tensor,
        at: int,
        mask: Tensor | None,
        keys: list[tuple[Tensor, Tensor]],
        bias: Tensor | None,
        past: list[Cache | None],
        B: int,
    ) -> tuple[Tensor, list[Cache]]:
        """Symbols (R,) at place `at` to vectors (R, D), and the caches after it."""
        old = [Cache.empty(self.table, B, self.heads) if c is None else c for c in past]
        caches = [cache.reserve(len(symbols) // B) for cache in old]
        both = [list(part) for part in zip(*keys, strict=True)]
        memory = [cache.memory for cache in caches]
        first = (symbols, self.table, self._place(at), self.scale)
        more = (mask, bias, old[0].count, self.heads, self.pre, self.eps)
        return self._run(*first, self.weights, memory, *both, *more), caches

    def _place(self, at: int) -> Tensor:
        """(1, D), what is added to vectors at this place."""
        if at not in self._places:
            nothing = self.table.new_zeros(1, 1, self.table.shape[1])
            self._places[at] = self.positions.embed(nothing, at)[0]
        return self._places[at]


def script_of(decoder: TransformerDecoder, embedding: nn.Module) -> Script | None:
    """The layers of a decoder as one function, or None where they are not of the plain kind."""
    layers = [layer for layer in decoder.layers if isinstance(layer, DecoderLayer)]
    weights = [found for layer in layers if (found := layer_weights(layer)) is not None]
    if type(embedding) is not Embedding or len(weights) < len(decoder.layers):
        return None
    return Script(decoder, embedding, weights)


def layer_weights(layer: DecoderLayer) -> list[Tensor] | None:
    """The weights of a layer as `decode` takes them, or None where it is not of that kind."""
    norms = [residual.norm for residual in (layer.attend, layer.look, layer.feed)]
    feed = layer.feedforward
    maps = [
        [layer.attention.project, layer.attention.join],
        [layer.cross.query, layer.cross.join],
        [feed.widen, feed.narrow],
    ]
    relu = feed.activation is nn.functional.relu
    plain = all(type(one) is nn.Linear and one.bias is not None for pair in maps for one in pair)
    if not plain or not all(type(norm) is LayerNorm for norm in norms) or not relu:
        return None
    found: list[Any] = []
    for norm, pair in zip(norms, maps, strict=True):
        found += [norm.weight, norm.bias]
        for one in pair:
            found += [one.weight.t().contiguous(), one.bias]
    return [weight.detach() for weight in found]
