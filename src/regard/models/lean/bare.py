"""Modules of a Transformer as plain functions of vectors (R, D), their weights taken out once."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear

from regard.inputs.frontend import Embedding
from regard.models.generator import Head
from regard.nn.feedforward import FeedForward
from regard.nn.int8 import Int8Linear
from regard.nn.norms import LayerNorm, NoNorm
from regard.nn.residual import PreNorm, Residual

LARGE = 1 << 18  # numbers of a matrix
Map = Callable[[Tensor], Tensor]


def bare_residual(residual: Residual) -> tuple[Map, Callable[[Tensor, Tensor], Tensor]]:
    """`enter` and `leave` of a residual branch."""
    norm = bare_norm(residual.norm)
    if isinstance(residual, PreNorm):
        return norm, torch.add
    return (lambda x: x), (lambda x, branch: norm(x + branch))


def bare_feed(feedforward: FeedForward) -> Map:
    """A feed-forward network."""
    widen, narrow = bare_linear(feedforward.widen), bare_linear(feedforward.narrow)
    activation = torch.relu_ if feedforward.activation is nn.functional.relu else None
    if activation is None:
        return lambda x: narrow(feedforward.activation(widen(x)))
    return lambda x: narrow(activation(widen(x)))


def bare_linear(module: nn.Module) -> Map:
    """(R, inputs) to (R, outputs); what is no plain linear map is called as it is."""
    if isinstance(module, Int8Linear):
        return module.bare()
    if type(module) is not nn.Linear or module.bias is None:
        return module
    weight, bias = module.weight.detach().t(), module.bias.detach()
    return lambda x: torch.addmm(bias, x, weight)


def bare_head(head: nn.Module) -> Map:
    """(R, D) to logits (R, V), by oneDNN with weights laid out for it, where torch has that.

    For a large matrix it is up to twice as fast; for a small one it is slower.
    """
    if type(head) is not Head or head.weight.device.type != "cpu":
        return head
    weight, bias = head.weight.detach(), None if head.bias is None else head.bias.detach()
    if weight.numel() < LARGE:
        return lambda x: linear(x, weight, bias)
    probe = torch.linspace(-1, 1, 3 * weight.shape[1], dtype=weight.dtype).view(3, -1)
    with torch.no_grad():
        try:
            packed = torch.ops.mkldnn._reorder_linear_weight(weight.contiguous())
            multiply = torch.ops.mkldnn._linear_pointwise.default
            found = multiply(probe, packed, bias, "none", [], "")
            alike = torch.allclose(found, head(probe), rtol=1e-4, atol=1e-4)
        except (AttributeError, RuntimeError):
            return head
    return (lambda x: multiply(x, packed, bias, "none", [], "")) if alike else head


def bare_norm(module: nn.Module) -> Map:
    """A norm; nothing where there is none."""
    if type(module) is not LayerNorm:
        return (lambda x: x) if isinstance(module, NoNorm) else module
    shape, eps = module.normalized_shape, module.eps
    weight, bias = module.weight.detach(), module.bias.detach()
    return lambda x: torch.layer_norm(x, shape, weight, bias, eps, False)


def bare_embedding(module: nn.Module) -> Map:
    """Symbols to vectors."""
    if type(module) is not Embedding:
        return module
    weight, scale = module.weight.detach(), module.scale
    return lambda symbols: embedding(symbols, weight) * scale


def bare_bias(mask: Tensor, like: Tensor) -> Tensor:
    """The mask (B, S) as what is added to scores, (B, 1, 1, S)."""
    bias = torch.zeros(mask.shape, dtype=like.dtype, device=like.device)
    return bias.masked_fill_(~mask, float("-inf"))[:, None, None]
