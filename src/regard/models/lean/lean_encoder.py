"""Encoders as one function of symbols, with the same numbers.

B rows, S length, D width, G = gates * D.
"""

from collections.abc import Callable, Iterable
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from regard.data.tensors.padded import Padded
from regard.inputs.text import SymbolFrontend
from regard.models.generator import Generator
from regard.models.lean.bare import (
    bare_bias,
    bare_embedding,
    bare_feed,
    bare_linear,
    bare_norm,
    bare_residual,
)
from regard.models.lean.cells import BareCell, bare_cells, bare_reader
from regard.models.recurrent import RecurrentEncoder
from regard.models.transformer import TransformerEncoder
from regard.nn.layers import EncoderLayer
from regard.nn.recurrent import Bidirectional, Recurrence, ends

Encode = Callable[[Padded], Padded]


def lean_encoder(model: Generator) -> Encode:
    """Frontend and encoder of a generator as one function, as they are where they have no twin."""
    encoder, frontend = model.encoder, model.frontend
    found: Encode | None = None
    if type(frontend) is SymbolFrontend and isinstance(encoder, TransformerEncoder):
        found = _transformer(encoder, frontend)
    if type(frontend) is SymbolFrontend and isinstance(encoder, RecurrentEncoder):
        found = _recurrent(encoder, frontend)
    return found or (lambda source: encoder(frontend(source)))


def _transformer(encoder: TransformerEncoder, frontend: SymbolFrontend) -> Encode:
    layers = [_encoder_layer(layer) for layer in encoder.layers]  # type: ignore[arg-type]
    embed, norm = bare_embedding(frontend.symbols), bare_norm(encoder.norm)

    def run(source: Padded) -> Padded:
        B, S = source.data.shape
        x = encoder.positions.embed(embed(source.data), 0).flatten(0, 1)  # (B*S, D)
        bias = None if bool(source.mask.all()) else bare_bias(source.mask, x)
        for layer in layers:
            x = layer(x, bias, B)
        return Padded(norm(x).view(B, S, -1), source.mask)

    return run


def _encoder_layer(layer: EncoderLayer) -> Callable[[Tensor, Tensor | None, int], Tensor]:
    """An encoder layer as one function of all symbols (B*S, D)."""
    heads = layer.attention.heads
    project, join = bare_linear(layer.attention.project), bare_linear(layer.attention.join)
    feed = bare_feed(layer.feedforward)
    (enter1, leave1), (enter2, leave2) = map(bare_residual, (layer.attend, layer.feed))

    def run(x: Tensor, bias: Tensor | None, B: int) -> Tensor:
        R, D = x.shape
        qkv = project(enter1(x)).view(B, R // B, 3, heads, D // heads).permute(2, 0, 3, 1, 4)
        out = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], bias)
        x = leave1(x, join(out.transpose(1, 2).reshape(R, D)))
        return leave2(x, feed(enter2(x)))

    return run


def _recurrent(encoder: RecurrentEncoder, frontend: SymbolFrontend) -> Encode | None:
    """None where a layer is of no plain kind, or not on a CPU."""
    body = encoder.body
    both = isinstance(body, Bidirectional)
    stacks = [bare_cells(side) for side in _sides(body)]
    if not all(stacks) or frontend.symbols.weight.device.type != "cpu":
        return None
    layers = list(zip(*stacks, strict=True))
    readers = [bare_reader(frontend.symbols, cell) for cell in layers[0]]

    def run(source: Padded) -> Padded:
        symbols = source.data.t()  # (S, B)
        mask = None if bool(source.mask.all()) else source.mask.t().unsqueeze(-1)  # (S, B, 1)
        x = _read(layers[0], [read(symbols) for read in readers], mask)
        for cells in layers[1:]:
            gates = [cell.gates(x.flatten(0, 1)).view(*symbols.shape, -1) for cell in cells]
            x = x + _read(cells, gates, mask)
        found = Padded(x.transpose(0, 1).contiguous(), source.mask)
        return found._replace(summary=ends(found, both))

    return run


def _sides(body: Recurrence | Bidirectional) -> list[list[nn.Module]]:
    """The layers that read from the left, and those that read from the right."""
    if isinstance(body, Recurrence):
        return [list(body.layers)]
    stacks = (body.forwards, body.backwards)
    return [[layer for one in side for layer in cast(Recurrence, one).layers] for side in stacks]


def _read(cells: Iterable[BareCell], gates: list[Tensor], mask: Tensor | None) -> Tensor:
    """The states (S, B, D) of a layer whose inputs add these gates (S, B, G): of the one that
    reads from the left and, if there is a second one, of the one that reads from the right."""
    left, *right = zip(cells, gates, strict=True)
    states = [left[0].read(left[1], None, False)]
    states += [cell.read(own, mask, True) for cell, own in right]
    return torch.cat(states, -1)
