"""Transformer layers give the numbers of torch.nn with the same weights, and a few by hand.

B rows, S source length, T target length, D width, H heads.
"""

import math
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.core.errors import UserError
from regard.data.tensors.padded import Padded
from regard.models.output_layer import OutputLayer
from regard.models.transformer_options import TransformerDecoderOptions, TransformerEncoderOptions
from regard.nn.attention import CrossAttention, HeadSizes, SelfAttention
from regard.nn.kernels.kernel import AttentionMask
from regard.nn.kernels.softmax import SoftmaxAttention
from regard.nn.norms.vector import LayerNorm, Rms
from regard.nn.positions import NoPositions, Position
from regard.nn.positions.learned import LearnedPosition
from regard.nn.positions.sinusoidal import SinusoidalPosition, sinusoids
from regard.nn.residual import PostNorm, PreNorm, Residual

B, S, T, D, H = 3, 5, 4, 16, 4
MASK = torch.arange(S) < torch.tensor([5, 3, 1])[:, None]  # (B, S)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, atol=2e-6, rtol=1e-5)


def noisy(module: nn.Module) -> nn.Module:
    """The module with all weights, biases and norms moved, so that none can be mistaken."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 0.1 * torch.randn(parameter.shape)
    return module.eval()


def put(theirs: nn.Module, ours: nn.Module) -> None:
    """Copies weight and bias."""
    with torch.no_grad():
        theirs.weight.copy_(ours.weight)
        theirs.bias.copy_(ours.bias)


def put_self(theirs: nn.MultiheadAttention, ours: SelfAttention) -> None:
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.project.weight)
        theirs.in_proj_bias.copy_(ours.project.bias)
    put(theirs.out_proj, ours.join)


def put_cross(theirs: nn.MultiheadAttention, ours: CrossAttention) -> None:
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.project.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.project.bias]))
    put(theirs.out_proj, ours.join)


def put_rest(theirs: nn.Module, ours: nn.Module) -> None:
    """The feed-forward network and the norms of a layer."""
    put(theirs.linear1, ours.feedforward.widen)
    put(theirs.linear2, ours.feedforward.narrow)
    residuals = [part for part in ours.children() if isinstance(part, Residual)]
    for number, residual in enumerate(residuals, 1):
        put(getattr(theirs, f"norm{number}"), residual.norm)


def settings(place: str, activation: str) -> dict:
    return {
        "layers": 2,
        "width": D,
        "heads": H,
        "feedforward_width": 24,
        "dropout": 0.0,
        "norm_position": place,
        "activation": activation,
        "positions": NoPositions(),
    }


def theirs_of(layer: type, place: str, activation: str) -> nn.Module:
    first = place == "pre"
    function = getattr(F, activation)
    return layer(D, H, 24, 0.0, function, batch_first=True, norm_first=first)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("place", ["pre", "post"])
def test_encoder(place: str, activation: str) -> None:
    torch.manual_seed(0)
    ours = noisy(TransformerEncoderOptions(**settings(place, activation)).build())
    final = nn.LayerNorm(D) if place == "pre" else None
    layer = theirs_of(nn.TransformerEncoderLayer, place, activation)
    theirs = nn.TransformerEncoder(layer, 2, final, enable_nested_tensor=False)
    for there, here in zip(theirs.layers, ours.layers, strict=True):
        put_self(there.self_attn, here.attention)
        put_rest(there, here)
    if final is not None:
        put(theirs.norm, ours.norm)

    x = torch.randn(B, S, D)
    expected = theirs.train()(x, src_key_padding_mask=~MASK)  # train: not their fused path
    close(ours(Padded(x, MASK)).data[MASK], expected[MASK])


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
@pytest.mark.parametrize("place", ["pre", "post"])
def test_decoder(place: str, activation: str) -> None:
    torch.manual_seed(0)
    ours = noisy(TransformerDecoderOptions(**settings(place, activation)).build(D))
    final = nn.LayerNorm(D) if place == "pre" else None
    theirs = nn.TransformerDecoder(
        theirs_of(nn.TransformerDecoderLayer, place, activation), 2, final
    )
    for there, here in zip(theirs.layers, ours.layers, strict=True):
        put_self(there.self_attn, here.attention)
        put_cross(there.multihead_attn, here.cross)
        put_rest(there, here)
    if final is not None:
        put(theirs.norm, ours.norm)

    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    causal = torch.ones(T, T, dtype=torch.bool).triu(1)
    expected = theirs(x, memory, tgt_mask=causal, memory_key_padding_mask=~MASK)
    out, _ = ours(x, ours.start(Padded(memory, MASK)))
    close(out, expected)


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention(causal: bool) -> None:
    torch.manual_seed(0)
    ours = noisy(SelfAttention(HeadSizes(D, H, H), SoftmaxAttention(causal)))
    theirs = nn.MultiheadAttention(D, H, batch_first=True)
    put_self(theirs, ours)
    x = torch.randn(B, S, D)
    future = torch.ones(S, S, dtype=torch.bool).triu(1) if causal else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they warn of two kinds of mask
        expected, weights = theirs(
            x, x, x, key_padding_mask=~MASK, attn_mask=future, average_attn_weights=False
        )
    mask = AttentionMask(Position(), B, MASK)
    out, _ = ours(x, mask, None)
    close(out, expected)

    q, k, v = ours.project(x).unflatten(-1, (3, H, -1)).permute(2, 0, 3, 1, 4)
    close(ours.kernel.weights(q, k, v, mask, None)[0], weights)


def test_cross_attention_with_memory_of_another_width() -> None:
    torch.manual_seed(0)
    M = 6
    ours = noisy(CrossAttention(HeadSizes(D, H, H), M, SoftmaxAttention()))
    theirs = nn.MultiheadAttention(D, H, kdim=M, vdim=M, batch_first=True)
    with torch.no_grad():
        key, value = ours.project.weight.chunk(2)
        theirs.q_proj_weight.copy_(ours.query.weight)
        theirs.k_proj_weight.copy_(key)
        theirs.v_proj_weight.copy_(value)
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.project.bias]))
    put(theirs.out_proj, ours.join)
    x, memory = torch.randn(B, T, D), torch.randn(B, S, M)
    expected, _ = theirs(x, memory, memory, key_padding_mask=~MASK)
    out, keys = ours(x, Padded(memory, MASK), None)
    close(out, expected)
    again, _ = ours(x, Padded(memory, MASK), keys)
    assert torch.equal(again, out)


def test_attention_by_hand() -> None:
    """Two queries 0 and log 3, two keys 0 and 1, two values 0 and 4, one head of width 1.

    Scores: (0, 0) and (0, log 3), so weights (1/2, 1/2) and (1/4, 3/4), so outputs 2 and 3.
    Without the future the first query sees only the first value, 0.
    """
    q, k, v = (torch.tensor(x).view(1, 1, 2, 1) for x in ([0, math.log(3)], [0.0, 1.0], [0.0, 4.0]))
    mask, kernel = AttentionMask(Position(), 1), SoftmaxAttention()
    weights, values = kernel.weights(q, k, v, mask, None)
    close(weights[0, 0], torch.tensor([[0.5, 0.5], [0.25, 0.75]]))
    assert torch.equal(values, v)
    close(kernel(q, k, v, mask, None)[0].flatten(), torch.tensor([2.0, 3.0]))
    close(SoftmaxAttention(causal=True)(q, k, v, mask, None)[0].flatten(), torch.tensor([0.0, 3.0]))


def test_attention_is_scaled_by_the_root_of_the_head_width() -> None:
    """Width 4: a product of 2 log 3 becomes a score of log 3."""
    q = torch.tensor([[[[2 * math.log(3), 0.0, 0.0, 0.0]]]])
    k = torch.tensor([[[[0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]]]])
    mask = AttentionMask(Position(), 1)
    weights, _ = SoftmaxAttention().weights(q, k, k, mask, None)
    close(weights.flatten(), torch.tensor([0.25, 0.75]))


def test_residual_by_hand() -> None:
    """x = (3, 5) has mean 4 and deviation 1, so norm(x) = (-1, 1); the branch doubles.

    pre: (3, 5) + 2 (-1, 1) = (1, 7). post: norm((3, 5) + 2 (3, 5)) = norm((9, 15)) = (-1, 1).
    """
    x = torch.tensor([3.0, 5.0])
    for kind, expected in ((PreNorm, [1.0, 7.0]), (PostNorm, [-1.0, 1.0])):
        residual = kind(LayerNorm(2), 0.0)
        out = residual.leave(x, 2 * residual.enter(x))
        torch.testing.assert_close(out, torch.tensor(expected), atol=1e-4, rtol=0)


def test_root_mean_square_norm_by_hand() -> None:
    """(1, 7) has the mean square 25: (1/5, 7/5)."""
    close(Rms().build(2)(torch.tensor([1.0, 7.0])), torch.tensor([0.2, 1.4]))


@pytest.mark.parametrize("width", [8, 7])
def test_sinusoids(width: int) -> None:
    """PE(t, 2i) = sin(t / 10000^(2i/D)),  PE(t, 2i+1) = cos(t / 10000^(2i/D))"""
    table = sinusoids(300, width)
    for t in (0, 1, 2, 17, 299):
        for i in range(width):
            angle = t / 10000 ** (2 * (i // 2) / width)
            expected = math.cos(angle) if i % 2 else math.sin(angle)
            assert float(table[t, i]) == pytest.approx(expected, abs=1e-4 if t > 100 else 1e-5)


def test_sinusoids_resume_where_they_were() -> None:
    """At place 255 and 256 too, where the table grows."""
    whole = SinusoidalPosition().embed(torch.zeros(1, 600, 8), 0)
    close(whole[0], sinusoids(600, 8))
    for at in (0, 250, 255, 256, 511, 512):
        close(SinusoidalPosition().embed(torch.zeros(1, 5, 8), at), whole[:, at : at + 5])


@pytest.mark.parametrize("width", [8, 7])
def test_sinusoids_in_halves(width: int) -> None:
    """The same numbers: those of even places first, then those of odd places."""
    usual, halves = sinusoids(20, width), sinusoids(20, width, "halves")
    assert torch.equal(halves, torch.cat([usual[:, 0::2], usual[:, 1::2]], 1))
    out = SinusoidalPosition("halves").embed(torch.zeros(1, 3, width), 4)
    assert torch.equal(out[0], halves[4:7])


def test_learned_positions_are_an_embedding_of_positions() -> None:
    ours = LearnedPosition(6, 8)
    x = torch.randn(2, 3, 8)
    for at in (0, 3):
        close(ours.embed(x, at), x + F.embedding(torch.arange(at, at + 3), ours.weight))
    with pytest.raises(UserError, match=r"(?s)7 positions.*positions.length=6.*positions.length=7"):
        ours.embed(x, 4)


def test_head_with_a_bias_is_a_linear_layer() -> None:
    head, linear = noisy(OutputLayer(nn.Parameter(torch.randn(7, D)), bias=True)), nn.Linear(D, 7)
    put(linear, head)
    h = torch.randn(2, 3, D)
    close(head(h), linear(h))
