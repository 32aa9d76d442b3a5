"""The torch engine: when its fast path is rebuilt, and what is prepared before it predicts."""

import copy

import pytest
import torch
from torch import nn

from regard.inference.torch_engine import TorchEngine
from regard.models.output_layer import OutputLayer
from regard.nn.fast import compiled, warming_up


class Doubling(nn.Module):
    """A model whose fast path is a number, the double of its first weight."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2, elementwise_affine=False))
        self.register_parameter("none", None)

    def fast(self) -> "Double":
        return Double(float(self.inner[0].weight.detach()[0, 0]))


class Double:
    def __init__(self, weight: float) -> None:
        self.value = 2 * weight


def test_the_fast_path_is_kept_until_a_weight_changes() -> None:
    model = Doubling()
    engine = TorchEngine(model)
    first = engine.stepper()
    assert engine.stepper() is first
    with torch.no_grad():
        model.inner[0].weight.fill_(3.0)
    assert engine.stepper().value == 6.0
    model.inner[0] = nn.Linear(2, 2)
    nn.init.constant_(model.inner[0].weight, 4.0)
    assert engine.stepper().value == 8.0
    before = engine.stepper()
    model.double()
    assert engine.stepper() is not before


def test_models_that_are_made_in_inference_mode_have_a_fast_path() -> None:
    with torch.inference_mode():
        engine = TorchEngine(Doubling())
        assert engine.stepper() is engine.stepper()


def test_warming_up_leaves_the_profiling_mode_as_it_was() -> None:
    set_mode = torch._C._jit_set_profiling_mode
    old = set_mode(True)
    try:
        with pytest.raises(ValueError), warming_up():
            assert torch.is_inference_mode_enabled()
            raise ValueError
        assert set_mode(True) is True
    finally:
        set_mode(old)


def test_a_function_that_is_warmed_up_computes_the_same_for_other_shapes() -> None:
    run = compiled(_scaled)
    with warming_up():
        run(torch.ones(1, 1), 2)
    x = torch.randn(3, 5)
    assert torch.equal(run(x, 4), _scaled(x, 4))


def _scaled(x: torch.Tensor, times: int) -> torch.Tensor:
    for _ in range(times):
        x = torch.relu(x) * 2.0
    return x


@pytest.mark.parametrize("intel", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("rows", [1, 3, 32])
def test_output_layers_of_any_cpu_compute_the_same(
    intel: bool, bias: bool, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.models.output_layer.is_intel", lambda: intel)
    monkeypatch.setattr("regard.models.output_layer.LARGE", 0)
    layer = OutputLayer(nn.Parameter(torch.randn(11, 4)), bias)
    if layer.bias is not None:
        nn.init.normal_(layer.bias)
    x = torch.randn(rows, 4)
    with torch.inference_mode():
        found = copy.deepcopy(layer).fast()(x)
    torch.testing.assert_close(found, layer(x).detach(), atol=1e-5, rtol=1e-5)
