"""Laws of positions: a stack that reads in pieces, or in beams, knows where it is."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.core.errors import UserError
from regard.core.options import kinds_of
from regard.data.tensors.padded import Padded
from regard.models.transformer_options import (
    CausalTransformerOptions,
    TransformerDecoderOptions,
    TransformerEncoderOptions,
)
from regard.nn.kernels import Softmax
from regard.nn.kernels.kernel import Supports
from regard.nn.positions import Position, PositionOptions, Positions, Sinusoidal
from regard.nn.positions.sinusoidal import sinusoids

from .toys import Rising, Slanting, Turning

B, T, D, H = 2, 7, 8, 2
KINDS: list[Any] = [kind() for kind in kinds_of(Positions).values()]
SIZES = {"layers": 2, "width": D, "heads": H, "feedforward_width": 12, "dropout": 0.0}

each_kind = pytest.mark.parametrize("kind", KINDS, ids=[one.kind for one in KINDS])


def every_position() -> list[Position]:
    """One of each kind, and of each hook."""
    torch.manual_seed(1)
    return [*(kind.build(D, H) for kind in KINDS), Turning(), Slanting(H), Rising()]


each_position = pytest.mark.parametrize(
    "position", every_position(), ids=lambda position: type(position).__name__
)


def vectors(rows: int = B, length: int = T, seed: int = 0) -> Tensor:
    return torch.randn(rows, length, D, generator=torch.Generator().manual_seed(seed))


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@each_kind
def test_its_flags_are_true(kind: PositionOptions) -> None:
    position = kind.build(D, H)
    assert (kind.rotates, kind.biases) == (position.rotates, position.biases)
    x = vectors()
    q = x.unflatten(-1, (H, -1)).transpose(1, 2)
    if not position.rotates:
        assert torch.equal(position.rotate(q, q, 3)[0], q)
    at = torch.arange(T)
    assert (position.bias(q, at, at[None]) is None) == (not position.biases)


@each_kind
@torch.no_grad()
def test_pieces_are_embedded_as_the_whole(kind: PositionOptions) -> None:
    position, x = kind.build(D, H), vectors()
    whole = position.embed(x, 0)
    close(torch.cat([position.embed(x[:, :3], 0), position.embed(x[:, 3:], 3)], 1), whole)


@each_kind
def test_what_prediction_keeps_can_be_trained_with(kind: PositionOptions) -> None:
    """A table that is made in inference mode must not be kept: it cannot be trained with."""
    sinusoids.cache_clear()
    torch.manual_seed(0)
    position, q = kind.build(D, H), torch.randn(B, H, T, D // H, requires_grad=True)
    at = torch.arange(T)
    with torch.inference_mode():
        position.embed(vectors(), 0)
        position.rotate(q, q, 0)
        position.bias(q, at, at[None])
    x = vectors().requires_grad_()
    bias = position.bias(q, at, at[None])
    total = (position.embed(x, 0) ** 2).sum() + (position.rotate(q, q, 0)[0] ** 2).sum()
    (total if bias is None else total + bias.sum()).backward()
    assert x.grad is not None and q.grad is not None


@each_kind
def test_nothing_exceeds_its_maximum_length(kind: PositionOptions) -> None:
    position = kind.build(D, H)
    if position.length is None:
        assert position.embed(vectors(1, 600), 600).shape == (1, 600, D)
    else:
        with pytest.raises(UserError, match="learned positions"):
            position.embed(vectors(1, 2), position.length - 1)


@each_position
@torch.no_grad()
def test_a_decoder_that_reads_in_pieces(position: Position) -> None:
    torch.manual_seed(0)
    decoder = CausalTransformerOptions(**SIZES).build().eval()
    decoder.positions = position
    whole, _ = decoder(vectors(), decoder.start(None))
    state, found = decoder.start(None), []
    for piece in vectors().split([1, 3, 1, 2], 1):
        out, state = decoder(piece, state)
        found.append(out)
    close(torch.cat(found, 1), whole)


@each_position
@torch.no_grad()
def test_reordered_beams(position: Position) -> None:
    """k beams of a sentence, and as many sentences of one beam."""
    k = 3
    torch.manual_seed(0)
    decoder = TransformerDecoderOptions(**SIZES).build(D).eval()
    decoder.positions = position
    memory = Padded(vectors(B, 4, 9), torch.ones(B, 4, dtype=torch.bool))
    many = Padded(*(x.repeat_interleave(k, 0) for x in memory[:2]))
    chance = torch.Generator().manual_seed(4)
    shared, alone = decoder.start(memory), decoder.start(many)
    for step in range(30):
        x = vectors(k * B, 1, seed=step)
        here, shared = decoder(x, shared)
        there, alone = decoder(x, alone)
        close(here, there)
        rows = (torch.randint(k, (B, k), generator=chance) + torch.arange(B)[:, None] * k).flatten()
        shared, alone = shared.select(rows), alone.select(rows, rows)


@each_position
@torch.no_grad()
def test_padding_is_invisible_to_an_encoder(position: Position) -> None:
    torch.manual_seed(0)
    encoder = TransformerEncoderOptions(**SIZES).build().eval()
    encoder.positions = position
    real = torch.arange(T) < torch.tensor([7, 3])[:, None]
    x = vectors()
    many = encoder(Padded(x.masked_fill(~real.unsqueeze(-1), 9.0), real))
    one = encoder(Padded(x[1:, :3], real[1:, :3]))
    close(many.data[1, :3], one.data[0])


@pytest.mark.parametrize("hook", ["rotates", "biases"])
def test_what_a_kernel_cannot_use_is_an_error(hook: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions that turn queries and keys, or add to scores, need a kernel with such scores."""
    ability, why = {
        "rotates": ("rotary", "rotate queries and keys"),
        "biases": ("bias", "add a bias to attention scores"),
    }[hook]
    monkeypatch.setattr(Softmax, "supports", Supports()._replace(**{ability: False}))
    monkeypatch.setattr(Sinusoidal, hook, True)
    with pytest.raises(ValueError, match=f"positions sinusoidal {why}.*attention softmax"):
        TransformerEncoderOptions(positions="sinusoidal")
