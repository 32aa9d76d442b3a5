"""Initializations: deviations against the formulas, and what is left alone."""

import math

import pytest
import torch
from torch import nn

from regard.config.load import check_config
from regard.core.errors import UserError
from regard.inputs.frontend import Embedding
from regard.inputs.input import InputShape
from regard.models.encoder_decoder import EncoderDecoderOptions
from regard.nn.attention import SelfAttention
from regard.optim.init import (
    Default,
    Depth,
    Gpt2,
    Init,
    InitTarget,
    KaimingNormal,
    KaimingUniform,
    Lecun,
    Normal,
    Orthogonal,
    RandomInit,
    Small,
    TruncatedNormal,
    XavierNormal,
    XavierUniform,
    matrices,
)

KINDS = [kind for kind in Init.__origin__.__args__ if kind is not Default]
WIDTH, LAYERS = 48, 3
SIZES = {"width": WIDTH, "layers": LAYERS, "dropout": 0.0}
TRANSFORMER = {"kind": "transformer", "heads": 2, "feedforward_width": 4 * WIDTH, **SIZES}
RECURRENT = {"kind": "recurrent", **SIZES}


def build(side: dict = TRANSFORMER) -> nn.Module:
    torch.manual_seed(1)
    options = EncoderDecoderOptions.model_validate({"encoder": side, "decoder": side})
    return options.build(InputShape("text", 9), 9, False)


def of(model: nn.Module, name: str) -> torch.Tensor:
    return model.get_parameter(name).detach()


def deviation(weight: torch.Tensor) -> float:
    return float(weight.detach().square().mean().sqrt())


@pytest.mark.parametrize(
    ("init", "square", "wide"),
    [
        # inputs n = 48 and outputs m = 48; then n = 48 and m = 192
        (XavierUniform(), 2 / 96, 2 / 240),
        (XavierNormal(), 2 / 96, 2 / 240),
        (XavierNormal(gain=3.0), 18 / 96, 18 / 240),
        (KaimingUniform(), 2 / 48, 2 / 48),
        (KaimingNormal(), 2 / 48, 2 / 48),
        (Lecun(), 1 / 48, 1 / 48),
        (Normal(std=0.3), 0.09, 0.09),
        (Small(), 2 / (5 * 48), 2 / (5 * 48)),
        (Orthogonal(), 1 / 48, 1 / 192),  # rows or columns of length 1
    ],
    ids=lambda value: value.kind if isinstance(value, RandomInit) else "",
)
def test_variances(init: RandomInit, square: float, wide: float) -> None:
    model = build()
    init.apply(model)
    query, key, value = of(model, "encoder.layers.1.attention.project.weight").chunk(3)
    for weight in (query, key, value, of(model, "decoder.layers.2.cross.query.weight")):
        assert weight.var() == pytest.approx(square, rel=0.12)
    assert of(model, "encoder.layers.0.feedforward.widen.weight").var() == pytest.approx(
        wide, rel=0.1
    )
    narrow = of(model, "encoder.layers.0.feedforward.narrow.weight")
    assert (narrow.abs().max() < math.sqrt(3 * narrow.var()) * 1.05) == ("uniform" in init.kind)


def test_a_normal_distribution_without_tails() -> None:
    """None beyond two deviations; what is left of the variance is 0.774 of it (by the formula)."""
    model = build()
    TruncatedNormal(std=0.5).apply(model)
    weight = of(model, "encoder.layers.0.feedforward.widen.weight")
    density = math.exp(-2) / math.sqrt(2 * math.pi)
    kept = math.erf(2 / math.sqrt(2))
    assert 0.9 < weight.abs().max() <= 1.0
    assert weight.var() == pytest.approx(0.25 * (1 - 2 * 2 * density / kept), rel=0.05)


def test_orthogonal_gates() -> None:
    """Of each gate the rows are orthogonal, not of all gates together."""
    model = build(RECURRENT)
    Orthogonal(gain=2.0).apply(model)
    for gate in of(model, "decoder.body.layers.0.weight_hh_l0").split(WIDTH):
        torch.testing.assert_close(gate @ gate.T, 4 * torch.eye(WIDTH), atol=1e-4, rtol=0)


def test_gpt2_makes_the_last_matrix_of_a_branch_smaller() -> None:
    model = build()
    Gpt2().apply(model)
    for name, branches in (
        ("encoder.layers.0.attention.join.weight", 2 * LAYERS),
        ("encoder.layers.2.feedforward.narrow.weight", 2 * LAYERS),
        ("decoder.layers.1.cross.join.weight", 3 * LAYERS),
    ):
        assert deviation(of(model, name)) == pytest.approx(0.02 / math.sqrt(branches), rel=0.06)
    for name in (
        "encoder.layers.0.attention.project.weight",
        "decoder.layers.0.cross.query.weight",
    ):
        assert deviation(of(model, name)) == pytest.approx(0.02, rel=0.06)


def test_depth_makes_later_layers_smaller() -> None:
    model = build()
    Depth().apply(model)
    for layer in range(LAYERS):
        weight = of(model, f"decoder.layers.{layer}.feedforward.widen.weight")
        expected = math.sqrt(2 / (5 * WIDTH)) / math.sqrt(layer + 1)
        assert deviation(weight) == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize("side", [TRANSFORMER, RECURRENT], ids=["transformer", "recurrent"])
@pytest.mark.parametrize("kind", KINDS)
def test_only_matrices_are_drawn(kind: type[RandomInit], side: dict) -> None:
    """Each of them; biases of linear layers are 0; embeddings, norms and gates stay."""
    if kind is Depth and side is RECURRENT:
        with pytest.raises(
            UserError, match=r"(?s)init\.kind=depth: .*no Transformer layers.*xavier"
        ):
            kind().apply(build(side))
        return
    before, after = build(side), build(side)
    torch.manual_seed(2)
    kind().apply(after)
    linear = [f"{name}." for name, part in after.named_modules() if isinstance(part, nn.Linear)]
    embedded = [f"{name}." for name, part in after.named_modules() if isinstance(part, Embedding)]
    for name, old in before.named_parameters():
        new = after.get_parameter(name)
        assert torch.isfinite(new).all()
        if name.startswith(tuple(linear)) and name.endswith("bias"):
            assert not new.any()
        else:
            drawn = old.dim() == 2 and not name.startswith((*embedded, "head."))
            assert torch.equal(old, new) != drawn, name


def test_the_default_changes_nothing_and_draws_nothing() -> None:
    before, after = build(), build()
    state = torch.get_rng_state()
    Default().apply(after)
    assert torch.equal(torch.get_rng_state(), state)
    for old, new in zip(before.parameters(), after.parameters(), strict=True):
        assert torch.equal(old, new)


def test_convolutions_are_drawn_too() -> None:
    """The inputs of an output are those of all places of the kernel."""
    layer = nn.Conv1d(16, 32, kernel_size=5)
    Lecun().apply(layer)
    assert layer.weight.detach().var() == pytest.approx(1 / (16 * 5), rel=0.1)
    assert not layer.bias.any()


def test_matrices_know_their_place() -> None:
    found: list[InitTarget] = list(matrices(build()))
    attention = sum(isinstance(part, SelfAttention) for part in build().modules())
    assert attention == 2 * LAYERS
    # an encoder layer: q k v, join, widen, narrow; a decoder layer: these and q, k v, join
    assert len(found) == LAYERS * (6 + 10)
    assert sum(matrix.is_last for matrix in found) == LAYERS * (2 + 3)
    assert {(m.layer, m.branches) for m in found} == {
        (layer, branches) for layer in (1, 2, 3) for branches in (2 * LAYERS, 3 * LAYERS)
    }


def test_a_model_without_matrices() -> None:
    with pytest.raises(UserError, match=r"init\.kind=lecun: this model has no matrices"):
        Lecun().apply(nn.LayerNorm(3))
    assert not list(matrices(nn.LayerNorm(3)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "xavier"}, "did you mean xavier_"),
        ({"kind": "normal", "std": 0}, "training.init.std: Input should be greater than 0"),
        ({"kind": "lecun", "gain": 2}, "only for kind=xavier_uniform"),
    ],
)
def test_misuse(settings: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_config({"training": {"init": settings}}, "settings")
