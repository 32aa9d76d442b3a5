"""Kernels against softmax in the limit that makes them exact, and against papers by hand."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.core.errors import UserError
from regard.data.tensors.padded import Padded
from regard.models.transformer_options import CausalTransformerOptions, TransformerEncoderOptions
from regard.nn.attention import HeadSizes, SelfAttention
from regard.nn.kernels.additive import AdditiveAttention
from regard.nn.kernels.bigbird import BigBird
from regard.nn.kernels.block import Block
from regard.nn.kernels.convolution import Convolution, ConvolutionAttention
from regard.nn.kernels.kernel import AttentionMask, Kernel, KernelOptions, Shape
from regard.nn.kernels.linear import Linear
from regard.nn.kernels.linformer import Linformer, LinformerAttention
from regard.nn.kernels.local import Local
from regard.nn.kernels.longformer import Longformer, LongformerAttention
from regard.nn.kernels.nystrom import Nystrom
from regard.nn.kernels.performer import PerformerAttention, orthogonal_directions
from regard.nn.kernels.reformer import Reformer
from regard.nn.kernels.relu import Relu
from regard.nn.kernels.softmax import Softmax, SoftmaxAttention
from regard.nn.kernels.strided import Strided
from regard.nn.kernels.synthesizer import Synthesizer, SynthesizerAttention
from regard.nn.kernels.topk import TopK
from regard.nn.positions import Position

B, H, T, K = 2, 2, 24, 8
SIZES = {"layers": 2, "width": 16, "heads": 2, "feedforward_width": 16, "dropout": 0.0}


def heads(seed: int = 0, scale: float = 1.0) -> list[Tensor]:
    chance = torch.Generator().manual_seed(seed)
    return list((scale * torch.randn(3, B, H, T, K, generator=chance)).unbind(0))


def run(kernel: Kernel, q: Tensor, k: Tensor, v: Tensor, *extra: Tensor) -> Tensor:
    """The output for all positions, without padding."""
    prepared, _ = kernel.prepare(None, len(v), len(v), v.shape[2], v)
    return kernel(q, k, v, AttentionMask(Position(), len(v), prepared=prepared), None, *extra)[0]


def softmax(q: Tensor, k: Tensor, v: Tensor, causal: bool = False) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def close(one: Tensor, other: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(one, other, atol=tolerance, rtol=1e-4)


EXACT: list[KernelOptions] = [
    Softmax(fused=False),
    Local(window=T),
    Block(size=T),
    Strided(stride=T),
    Longformer(window=T, tokens=0),
    BigBird(size=4, window=T // 4, first=0, random=0),
    BigBird(size=2, window=0, first=0, random=T),
    TopK(count=T),
]


@pytest.mark.parametrize("kind", EXACT, ids=lambda kind: kind.kind)
@pytest.mark.parametrize("causal", [False, True])
@torch.no_grad()
def test_the_limit_is_softmax(kind: KernelOptions, causal: bool) -> None:
    kernel, (q, k, v) = kind.build(Shape(H * K, H, causal)), heads()
    close(run(kernel, q, k, v), softmax(q, k, v, causal))


@torch.no_grad()
def test_if_all_positions_of_longformer_are_global_it_is_softmax() -> None:
    kernel = Longformer(window=1, tokens=T).build(Shape(H * K, H, causal=False))
    (q, k, v), (other_q, other_k, _) = heads(), heads(1)
    close(run(kernel, q, k, v, other_q, other_k), softmax(other_q, other_k, v))


@torch.no_grad()
def test_linformer_with_an_identity_is_softmax() -> None:
    kernel, (q, k, v) = LinformerAttention(T, T, shared=True), heads()
    kernel.keys.copy_(torch.eye(T))
    close(run(kernel, q, k, v), softmax(q, k, v))


@torch.no_grad()
def test_nystrom_with_a_landmark_per_position_is_softmax() -> None:
    """The matrix in the middle is then the whole attention matrix, times its inverse."""
    kernel = Nystrom(landmarks=T, iterations=30).build(Shape(H * K, H, causal=False))
    q, _, v = heads(scale=3.0)
    q = F.normalize(q, dim=-1) * 12
    close(run(kernel, q, q, v), softmax(q, q, v), 1e-4)


@torch.no_grad()
def test_reformer_with_one_chunk_is_softmax_of_shared_queries_and_keys() -> None:
    kernel = Reformer(chunk=T, rounds=1).build(Shape(H * K, H, causal=False))
    _, k, v = heads()
    others = ~torch.eye(T, dtype=torch.bool)  # a position does not attend to itself
    expected = F.scaled_dot_product_attention(k, F.normalize(k, dim=-1), v, attn_mask=others)
    close(run(kernel, k, k, v), expected)


@torch.no_grad()
def test_more_rounds_bring_reformer_nearer_to_softmax() -> None:
    _, k, v = heads()
    others = ~torch.eye(T, dtype=torch.bool)
    expected = F.scaled_dot_product_attention(k, F.normalize(k, dim=-1), v, attn_mask=others)
    errors = []
    for rounds in (1, 16):
        torch.manual_seed(0)
        kernel = Reformer(chunk=6, rounds=rounds).build(Shape(H * K, H, causal=False))
        errors.append(float((run(kernel, k, k, v) - expected).norm()))
    assert errors[1] < errors[0]


@torch.no_grad()
def test_linear_attention_by_hand() -> None:
    """phi(x) = x + 1 for x >= 0, so the weights of the keys are 2 + 1 and 1 + 3."""
    q, k = torch.zeros(1, 1, 1, 2), torch.tensor([[[[1.0, 0.0], [0.0, 2.0]]]])
    v = torch.tensor([[[[7.0, 0.0], [0.0, 14.0]]]])
    kernel = Linear().build(Shape(2, 1, causal=False))
    found = run(kernel, q.expand(1, 1, 2, 2), k, v)[0, 0, 0]
    close(found, torch.tensor([7 * 3 / 7, 14 * 4 / 7]))


@torch.no_grad()
def test_the_mean_of_performer_features_is_the_exponential() -> None:
    """Over many samples, phi(q) . phi(k) is exp(q . k / sqrt(K)), up to a factor per query."""
    torch.manual_seed(0)
    kernel = PerformerAttention(4096 * 4, K, 0, causal=False)
    q, k, _ = (0.3 * x[:1, :1] for x in heads())
    found = kernel.query_features(q) @ kernel.key_features(k).transpose(-2, -1)
    expected = (q @ k.transpose(-2, -1) / K**0.5).exp()
    ratio = found / expected
    assert float((ratio / ratio.mean(-1, keepdim=True) - 1).abs().mean()) < 0.03


@torch.no_grad()
def test_the_error_of_performer_falls_with_the_root_of_its_features() -> None:
    q, k, v = (0.3 * x for x in heads())
    expected, errors = softmax(q, k, v), []
    torch.manual_seed(0)
    for features in (32, 512):  # 16 times as many: a quarter of the error
        some = [
            float((run(PerformerAttention(features, K, 0, False), q, k, v) - expected).norm())
            for _ in range(20)
        ]
        errors.append(sum(some) / len(some))
    assert 3.0 < errors[0] / errors[1] < 5.5


@torch.no_grad()
def test_directions_are_orthogonal_and_as_long_as_normal_vectors() -> None:
    torch.manual_seed(0)
    found = orthogonal_directions(2000, 8)
    close(found[:8] @ found[:8].t(), torch.diag(found[:8].square().sum(-1)))
    assert abs(float(found.square().sum(-1).mean()) - 8) < 0.5


@torch.no_grad()
def test_performer_survives_large_keys() -> None:
    q, k, v = heads(scale=20.0)
    for causal in (False, True):
        torch.manual_seed(0)
        assert run(PerformerAttention(32, K, 0, causal), q, k, v).isfinite().all()


@torch.no_grad()
def test_the_weights_of_performer_sum_to_one_if_all_features_are_tiny() -> None:
    """In both directions, the largest feature of a row becomes 1."""
    torch.manual_seed(0)
    kernel, (q, k, v) = PerformerAttention(32, K, 0, False), heads()
    assert kernel.key_features(40 * k).max() < 1e-30
    close(run(kernel, q, 40 * k, torch.ones_like(v)), torch.ones_like(v))


def test_performer_resamples_its_features_at_given_updates() -> None:
    kernel = PerformerAttention(16, K, 10, causal=False)
    before, chance = kernel.directions.clone(), torch.Generator().manual_seed(3)
    kernel.advance(9, chance)
    assert torch.equal(kernel.directions, before)
    kernel.advance(10, chance)
    assert not torch.equal(kernel.directions, before)
    expected = orthogonal_directions(16, K, torch.Generator().manual_seed(3))
    assert torch.equal(kernel.directions, expected)


@torch.no_grad()
def test_relu_by_hand() -> None:
    q = torch.tensor([[[[2.0]]]])
    k, v = torch.tensor([[[[1.0], [-3.0]]]]), torch.tensor([[[[5.0], [9.0]]]])
    kernel: Any = Relu().build(Shape(1, 1, causal=False))
    close(kernel.attend(q, (k, v), torch.ones(1, 2).bool()), torch.tensor([[[[2.0 / 2 * 5]]]]))


@torch.no_grad()
def test_topk_by_hand() -> None:
    """Scores 0, log 3 and log 2, of which the largest two remain: weights 3/5 and 2/5."""
    q = torch.ones(1, 1, 1, 1)
    k = torch.tensor([0.0, math.log(3), math.log(2)]).view(1, 1, 3, 1)
    v = torch.tensor([50.0, 5.0, 10.0]).view(1, 1, 3, 1)
    kernel: Any = TopK(count=2).build(Shape(1, 1, causal=False))
    close(kernel.attend(q, (k, v), torch.ones(1, 3).bool()), torch.tensor([[[[7.0]]]]))
    k[..., 0, :] = k[..., 2, :] * (1 - 1e-6)  # equal up to rounding: weights 2/7, 3/7, 2/7
    close(kernel.attend(q, (k, v), torch.ones(1, 3).bool()), torch.tensor([[[[135 / 7]]]]))


@torch.no_grad()
def test_additive_by_hand() -> None:
    kernel = AdditiveAttention(1, 2, causal=False)
    kernel.weigh.copy_(torch.tensor([[1.0, -2.0]]))
    q, k = torch.tensor([[[[0.5, 0.0]]]]), torch.tensor([[[[0.5, 1.0]]]])
    expected = math.tanh(1.0) - 2 * math.tanh(1.0)
    assert float(kernel.scores(q, k)) == pytest.approx(expected)


@torch.no_grad()
def test_a_random_synthesizer_is_the_softmax_of_its_matrix() -> None:
    kernel = SynthesizerAttention("random", 30, Shape(H * K, H, causal=False))
    assert kernel.reads == ("value",)
    _, _, v = heads()
    close(run(kernel, v, v, v), kernel.weigh[:, :T, :T].softmax(-1) @ v)


@torch.no_grad()
def test_attention_with_a_head_per_distance_is_a_convolution() -> None:
    """Each head attends to one neighbor only; the join holds the filter."""
    filters = torch.randn(6, 6, 3, generator=torch.Generator().manual_seed(0))  # out, in, distance
    kernel = ConvolutionAttention(1, 3, causal=False)
    kernel.scores.copy_(torch.eye(3) * 100)  # softmax: the head's own distance
    layer = SelfAttention(HeadSizes(18, 3, 3), kernel)
    layer.project.weight.zero_()
    layer.join.weight.zero_()
    for head in range(3):  # 18 inputs: 6 real ones; a head copies them; join applies the filter
        layer.project.weight[6 * head : 6 * head + 6, :6] = torch.eye(6)
        layer.join.weight[:6, 6 * head : 6 * head + 6] = filters[:, :, head]
    layer.join.bias.zero_()
    x = torch.randn(2, 9, 6, generator=torch.Generator().manual_seed(1))
    found, _ = layer(F.pad(x, (0, 12)), AttentionMask(Position(), 2), None)
    close(found[..., :6], F.conv1d(x.transpose(1, 2), filters, padding=1).transpose(1, 2))


@torch.no_grad()
def test_layers_of_local_attention_widen_the_field() -> None:
    """Two layers with a window of 2 see 4 positions away, and no further."""
    torch.manual_seed(0)
    encoder = TransformerEncoderOptions(**SIZES, attention={"kind": "local", "window": 2}).build()
    x, real = torch.randn(1, 12, 16), torch.ones(1, 12, dtype=torch.bool)
    changed = x.clone()
    changed[0, 0] = torch.randn(16)
    moved = (encoder(Padded(changed, real)).data - encoder(Padded(x, real)).data).abs().sum(-1)[0]
    assert (moved[:5] > 1e-4).all() and (moved[5:] == 0).all()


@torch.no_grad()
def test_why_scores_are_divided_by_the_root_of_the_width() -> None:
    """Scores of random vectors have variance d, and softmax of ten of them is nearly one-hot."""
    chance = torch.Generator().manual_seed(0)
    for width, largest in ((4, 0.50), (64, 0.87), (512, 0.95)):
        q, k = torch.randn(2, 1, 1, 2000, width, generator=chance)
        k = k[:, :, :10]
        for is_scaled, variance, weight in ((False, width, largest), (True, 1.0, 0.315)):
            kernel = SoftmaxAttention(scaled=is_scaled)
            pairs = torch.randn(2, 400, 1, 1, width, generator=chance)
            scores = kernel.scores(*pairs)
            assert float(scores.var()) == pytest.approx(variance, rel=0.25)
            groups = torch.randn(2000, 1, 10, width, generator=chance)
            weights = kernel.scores(q[0, 0].view(2000, 1, 1, width), groups).softmax(-1)
            assert float(weights.amax(-1).mean()) == pytest.approx(weight, abs=0.03)


@torch.no_grad()
def test_grouped_heads_are_repeated_heads() -> None:
    q, k, v = (torch.randn(B, 4, T, K) for _ in range(3))
    for kernel in (SoftmaxAttention(causal=True), SoftmaxAttention(causal=True, use_fused=False)):
        found = run(kernel, q, k[:, :2], v[:, :2])
        whole = [x[:, :2].repeat_interleave(2, 1) for x in (k, v)]
        close(found, softmax(q, *whole, causal=True))


def test_multi_query_attention_keeps_one_head_of_keys() -> None:
    decoder = CausalTransformerOptions(**SIZES, kv_heads=1).build().eval()
    attention: Any = decoder.layers[0].attention
    assert attention.project.out_features == 16 + 2 * 8
    with torch.no_grad():
        _, state = decoder(torch.randn(1, 3, 16), decoder.start(None))
    assert state.past["layers"][0].keys.shape == (1, 1, 3, 8)


@torch.no_grad()
def test_qk_norm_bounds_scores() -> None:
    """The scores of normalized queries and keys are at most sqrt(K), however large they are."""
    torch.manual_seed(0)
    layer = SelfAttention(HeadSizes(H * K, H, H, qk_norm=True), SoftmaxAttention(use_fused=False))
    layer.project.weight *= 100
    seen = []
    layer.kernel.normalize = lambda scores, visible: seen.append(scores) or scores.softmax(-1)  # type: ignore[method-assign]
    layer(torch.randn(B, T, H * K), AttentionMask(Position(), B), None)
    assert float(seen[0].abs().max()) <= K**0.5 + 1e-4


@torch.no_grad()
def test_qk_norm_also_normalizes_the_global_projections_of_longformer() -> None:
    torch.manual_seed(0)
    kernel = LongformerAttention(window=2, dilation=1, tokens=1, causal=False)
    layer = SelfAttention(HeadSizes(H * K, H, H, qk_norm=True), kernel)
    layer.project.weight *= 100
    seen: list[Tensor] = []
    kernel.register_forward_pre_hook(lambda _, args: seen.extend(args[5:]))
    layer(torch.randn(B, T, H * K), AttentionMask(Position(), B), None)
    assert len(seen) == 2
    for part in seen:
        torch.testing.assert_close(part.square().mean(-1), torch.ones(B, H, T), atol=1e-4, rtol=0)


@pytest.mark.parametrize("kind", [Linformer(length=20), Synthesizer(length=20)])
def test_longer_input_than_a_kernel_has_positions_is_an_error(kind: KernelOptions) -> None:
    kernel, (q, k, v) = kind.build(Shape(H * K, H, causal=False)), heads()
    assert kernel.length == 20
    with pytest.raises(UserError, match=f"24 positions exceeds the 20 of attention {kind.kind}"):
        run(kernel, q, k, v)


def test_unsuitable_head_settings_are_errors_by_name() -> None:
    with pytest.raises(ValueError, match="heads 4 is not a multiple of kv_heads 3"):
        TransformerEncoderOptions(heads=4, kv_heads=3)
    with pytest.raises(ValueError, match="attention convolution has no query projection or key"):
        TransformerEncoderOptions(qk_norm=True, attention=Convolution())
    with pytest.raises(ValueError, match="attention reformer has no query projection"):
        TransformerEncoderOptions(qk_norm=True, attention=Reformer())
    with pytest.raises(ValueError, match="kv_heads 1: attention reformer uses keys as queries"):
        TransformerEncoderOptions(heads=2, kv_heads=1, attention=Reformer())


@torch.no_grad()
def test_deepnorm_scales_the_values_of_every_layout() -> None:
    """Also if keys and values have fewer heads, and if a kernel reads more than three parts."""
    for settings, rows in (
        ({"kv_heads": 1}, slice(24, 32)),  # queries 16, keys 8, values 8
        ({"attention": {"kind": "longformer"}}, slice(32, 48)),  # then the global ones
        ({"attention": {"kind": "reformer"}}, slice(16, 32)),  # keys, values
    ):
        weights = []
        for place in ("post", "deepnorm"):
            torch.manual_seed(0)
            built = TransformerEncoderOptions(**SIZES, norm_position=place, **settings).build()
            weights.append(built.layers[0].attention.project.weight)
        changed = (weights[0] != weights[1]).all(1).nonzero().flatten().tolist()
        assert changed == list(range(rows.start, rows.stop))
