"""Norms, residual branches and gated networks, computed by hand from the papers."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config.defaults import fill_defaults
from regard.config.load import check_config, load_config
from regard.core.data_stats import DataStats
from regard.core.errors import UserError
from regard.core.options import not_exported
from regard.inputs.input import InputShape
from regard.models.transformer_options import TransformerEncoderOptions
from regard.nn.feedforward import ACTIVATIONS, GATED, FeedForward
from regard.nn.layers import TransformerLayer
from regard.nn.norms.batch import BatchNorm, PowerNorm
from regard.nn.norms.vector import LayerNorm, Scale
from regard.nn.residual import DeepNorm, SandwichNorm, deepnorm_factors
from regard.optim.init import XavierUniform

B, T, D = 3, 5, 8
REAL = torch.arange(T) < torch.tensor([5, 3, 1])[:, None]


def close(one: Tensor, other: Tensor, atol: float = 1e-5) -> None:
    torch.testing.assert_close(one, other, atol=atol, rtol=1e-5)


def test_scale_norm_by_hand() -> None:
    """(3, 4) has length 5, so its direction is (0.6, 0.8); g starts at the root of 2."""
    norm = Scale().build(2)
    close(norm(torch.tensor([3.0, 4.0])), math.sqrt(2) * torch.tensor([0.6, 0.8]))
    with torch.no_grad():
        norm.gain.fill_(10.0)
    close(norm(torch.tensor([-3.0, 4.0])), torch.tensor([-6.0, 8.0]), atol=1e-4)


def test_what_is_averaged() -> None:
    """Layer norm: over the features of a position. Batch norm: over the real positions of a batch,
    for each feature."""
    x = torch.randn(B, T, D) + 3
    layer, batch = LayerNorm(D)(x), BatchNorm(D, 0.1)(x, REAL)
    close(layer.mean(-1), torch.zeros(B, T))
    close(batch[REAL].mean(0), torch.zeros(D))
    close(batch[REAL].var(0, unbiased=False), torch.ones(D), atol=1e-3)
    assert layer[REAL].mean(0).abs().max() > 0.01 and batch.mean(-1).abs().max() > 0.01


def test_batch_norm_is_that_of_torch_without_padding() -> None:
    """Over five batches: outputs, gradients and running statistics."""
    ours, theirs = BatchNorm(D, 0.1), nn.BatchNorm1d(D)
    with torch.no_grad():
        ours.weight.copy_(torch.randn(D))
        ours.bias.copy_(torch.randn(D))
        theirs.load_state_dict({"weight": ours.weight, "bias": ours.bias}, strict=False)
    for _ in range(5):
        x = (2 * torch.randn(B, T, D) + 1).requires_grad_()
        here, there = ours(x, REAL)[REAL], theirs(x[REAL])
        close(here, there)
        push = torch.randn_like(here)
        one, other = (torch.autograd.grad((y * push).sum(), x)[0] for y in (here, there))
        close(one, other)
    close(ours.running_mean, theirs.running_mean)
    close(ours.running_variance, theirs.running_var)
    x = torch.randn(B, T, D)
    close(ours.eval()(x, REAL)[REAL], theirs.eval()(x[REAL]))


def test_the_first_batch_of_power_norm() -> None:
    """x / sqrt(mean x^2) times gain plus bias; padding does not count."""
    norm = PowerNorm(1, 0.9)
    with torch.no_grad():
        norm.weight.fill_(2.0)
        norm.bias.fill_(1.0)
    x = torch.tensor([[[1.0], [7.0]], [[1.0], [99.0]], [[7.0], [99.0]]])  # mean square 25
    real = torch.tensor([[True, True], [True, False], [True, False]])
    out = norm(x, real)
    close(out[0].flatten(), torch.tensor([2 * 0.2 + 1, 2 * 1.4 + 1]))
    close(norm.power, torch.tensor([25.0]))
    norm(2 * x, real)  # mean square 100
    close(norm.power, torch.tensor([0.9 * 25 + 0.1 * 100]))


def test_power_norm_is_algorithm_2() -> None:
    """Shen et al. 2020, line by line, over four batches."""
    norm, alpha = PowerNorm(D, 0.9), 0.9
    with torch.no_grad():
        norm.weight.copy_(torch.rand(D) + 0.5)
    psi2, nu = None, torch.zeros(D)
    for _ in range(4):
        x = (3 * torch.randn(B, T, D)).requires_grad_()
        push = torch.randn(B, T, D) * REAL.unsqueeze(-1)  # dL/dY: none from padding
        (gradient,) = torch.autograd.grad((norm(x, REAL) * push).sum(), x)
        rows = x.detach()[REAL]
        batch = (rows**2).mean(0)
        root = ((batch if psi2 is None else psi2) + 1e-5).sqrt()
        psi2 = batch if psi2 is None else alpha * psi2 + (1 - alpha) * batch
        normal, g = rows / root, push[REAL] * norm.weight.detach()
        expected = (g - nu * normal) / root
        gamma, lam = (normal**2).mean(0), (g * normal).mean(0)
        nu = nu * (1 - (1 - alpha) * gamma) + (1 - alpha) * lam
        close(gradient[REAL], expected)
        assert (gradient[~REAL] == 0).all()
    close(norm.power, psi2)
    close(norm.pull, nu)


def test_sandwich_norm_by_hand() -> None:
    """x = (3, 5): norm(x) = (-1, 1), doubled, and normalized again: (3, 5) + (-1, 1)."""
    x, residual = torch.tensor([3.0, 5.0]), SandwichNorm(LayerNorm(2), LayerNorm(2), 0.0)
    close(residual.leave(x, 2 * residual.enter(x)), torch.tensor([2.0, 6.0]), atol=1e-4)


def test_deep_norm_by_hand() -> None:
    """norm(2 (3, 5) + (0, 12)) = norm((6, 22)) = (-1, 1); with the branch (0, -12): (1, -1)."""
    x, residual = torch.tensor([3.0, 5.0]), DeepNorm(LayerNorm(2), 0.0, 2.0, 0.5)
    assert torch.equal(residual.enter(x), x)
    close(residual.leave(x, torch.tensor([0.0, 12.0])), torch.tensor([-1.0, 1.0]), atol=1e-4)
    close(residual.leave(x, torch.tensor([0.0, -12.0])), torch.tensor([1.0, -1.0]), atol=1e-4)


def test_the_factors_of_deep_norm() -> None:
    """Wang et al. 2022, figure 2: N encoder and M decoder layers."""
    assert deepnorm_factors(8, 2) == pytest.approx((2.0, 64**-0.25))  # one stack: 2N, 8N
    assert deepnorm_factors(27, 3) == pytest.approx((3.0, 324**-0.25))  # decoder: 3M, 12M
    depth = (18**4 * 6) ** (1 / 16)
    assert deepnorm_factors(18, 2, 6) == pytest.approx((0.81 * depth, 0.87 / depth))


def built(**sections: Any) -> nn.Module:
    tree = {"kind": "transformer", "layers": 8, "width": D, "heads": 2, "norm_position": "deepnorm"}
    sides = {side: tree | sections.get(side, {}) for side in ("encoder", "decoder")}
    config = check_config({"model": sides, "task": {"kind": "transduce"}}, "test")
    options = fill_defaults(config, DataStats(100, 1000, 9, False))[0].model
    torch.manual_seed(0)
    return options.build(InputShape("text", 9), 9, shared=False)


def test_a_deep_encoder_knows_its_decoder() -> None:
    model = built(decoder={"layers": 3})
    assert model.encoder.layers[0].feed.alpha == pytest.approx(0.81 * (8**4 * 3) ** (1 / 16))
    assert model.decoder.layers[0].feed.alpha == pytest.approx(9**0.25)


def scaled(layer: TransformerLayer, plain: TransformerLayer, beta: float) -> None:
    """All matrices are those of a plain layer times beta, but not queries and keys."""
    for name, weight in layer.named_parameters():
        other = plain.get_parameter(name)
        if name.endswith("project.weight"):
            keys = -D  # values are the last rows
            assert torch.equal(weight[:keys], other[:keys])
            close(weight[keys:], beta * other[keys:])
        elif weight.dim() == 2 and "query" not in name:
            close(weight, beta * other)
        else:
            assert torch.equal(weight, other)


@pytest.mark.parametrize("init", [None, XavierUniform()])
def test_deep_norm_scales_initial_weights(init: XavierUniform | None) -> None:
    """Those of a decoder with attention, also where another initialization comes after."""
    deep, plain = (
        built(),
        built(encoder={"norm_position": "post"}, decoder={"norm_position": "post"}),
    )
    if init is not None:
        for model in (deep, plain):
            torch.manual_seed(1)
            init.apply(model)
    for one, other in zip(deep.decoder.layers, plain.decoder.layers, strict=True):
        scaled(one, other, (12 * 8) ** -0.25)


def test_deep_norm_needs_the_residual_connection() -> None:
    settings = ["model.encoder.kind=transformer", "model.encoder.residual=false"]
    with pytest.raises(UserError, match=r"(?s)norm_position deepnorm.*residual=false"):
        load_config(
            None, ["task.kind=classify", *settings, "model.encoder.norm_position.kind=deepnorm"]
        )


@pytest.mark.parametrize("kind", GATED)
def test_gated_networks_by_hand(kind: Any) -> None:
    """(f(W1 x + b1) * (W3 x + b3)) W2 + b2, with a third matrix, and one more bias."""
    network, x = FeedForward(D, 12, kind, 0.0), torch.randn(B, D)
    one, two, three = network.widen, network.narrow, network.gate
    f = {"glu": torch.sigmoid, "reglu": F.relu, "geglu": F.gelu, "swiglu": F.silu}[kind]
    inner = f(x @ one.weight.T + one.bias) * (x @ three.weight.T + three.bias)
    close(network(x), inner @ two.weight.T + two.bias)
    assert sum(w.numel() for w in network.parameters()) == 3 * D * 12 + 2 * 12 + D


@pytest.mark.parametrize("activation", [*ACTIVATIONS, *GATED])
def test_matrices_are_counted(activation: Any) -> None:
    """`weights`, from which sizes and speed are estimated, counts all matrices of the layers."""
    sizes = {"layers": 2, "width": D, "heads": 2, "feedforward_width": 12, "dropout": 0.0}
    options = TransformerEncoderOptions(**sizes, activation=activation)
    matrices = [w for w in options.build().parameters() if w.dim() == 2]
    assert options.weights == sum(w.numel() for w in matrices)


def test_engines_that_cannot_run_a_setting_name_it() -> None:
    tree = {"kind": "transformer", "activation": "swiglu", "residual": False, "norm": "scale"}
    options = check_config({"model": {"encoder": tree, "decoder": tree}}, "test").model
    assert not_exported(options, "onnx", "model") == []
    assert not_exported(options, "ctranslate2", "model") == [
        f"model.{side}.{setting}"
        for side in ("decoder", "encoder")
        for setting in ("activation=swiglu", "residual=false", "norm.kind=scale")
    ]
