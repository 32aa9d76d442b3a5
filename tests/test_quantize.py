"""Layers with int8 weights against the layers they stand for, and how they are asked for."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import regard
from regard.core import parallel
from regard.core.errors import UserError
from regard.exchange.export.int8_folder import export
from regard.nn import fused_step, int8
from regard.nn.int8 import Int8Embedding, Int8Linear, Int8Matrix, Int8Recurrent
from regard.nn.quantize import quantize, size_of

PAIRS = [("ab", "ba"), ("abc", "cba"), ("fed", "def"), ("cafe", "efac"), ("bee", "eeb")]


def random(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_a_matrix_is_rounded_to_the_nearest_step_of_its_row() -> None:
    weight = random(7, 5) * torch.tensor([1e-3, 1.0, 50.0, 1.0, 1.0, 1.0, 0.0])[:, None]
    matrix = Int8Matrix.of(weight)
    largest = weight.abs().amax(1)
    assert matrix.values.dtype == torch.int8 and int(matrix.values.abs().max()) == 127
    off = (matrix.dequantized() - weight).abs()
    assert (off <= largest[:, None] / 127 / 2 * 1.0001).all()
    torch.testing.assert_close(matrix.dequantized().abs().amax(1), largest)  # keeps its value
    assert torch.equal(matrix.dequantized()[6], torch.zeros(5))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("tile", [1, 20, 1 << 18])
def test_a_product_is_that_of_the_rounded_matrix(
    bias: bool, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut into tiles or whole, for any number of rows."""
    monkeypatch.setattr(int8, "TILE", tile)
    linear = nn.Linear(9, 14, bias=bias)
    matrix = Int8Matrix.of(linear.weight)
    twin = Int8Linear(matrix, linear.bias)
    linear.weight.data = matrix.dequantized()
    for x in (random(9), random(1, 9), random(3, 9), random(2, 0, 9), random(2, 4, 9)):
        torch.testing.assert_close(twin(x), linear(x).detach())
    weights, x = twin.fused(), random(3, 9)
    assert (weights is not None) == bias
    if weights is not None:
        found = fused_step.linear(x, weights, 0, False, tile)
        torch.testing.assert_close(found, linear(x).detach())


def test_an_embedding_gives_the_rounded_rows() -> None:
    matrix, tokens = Int8Matrix.of(random(6, 4)), torch.tensor([[5, 0], [3, 3]])
    found = Int8Embedding(matrix, 2.5)(tokens)
    torch.testing.assert_close(found, matrix.dequantized()[tokens] * 2.5)


@pytest.mark.parametrize("length", [1, 2, 5])
@pytest.mark.parametrize("started", [True, False])
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
@torch.no_grad()
def test_a_recurrent_layer_is_torch_s_with_rounded_weights(
    kind: type[nn.RNNBase], started: bool, length: int
) -> None:
    layer = kind(3, 4, batch_first=True)
    for number, parameter in enumerate(layer.parameters()):
        parameter.copy_(random(*parameter.shape, seed=number))
    twin = quantize(copy.deepcopy(layer))
    assert isinstance(twin, Int8Recurrent)
    for weight in (layer.weight_ih_l0, layer.weight_hh_l0):
        weight.copy_(Int8Matrix.of(weight).dequantized())
    start: Any = None
    if started:
        start = random(1, 2, 4, seed=8)
        start = (start, random(1, 2, 4, seed=9)) if kind is nn.LSTM else start
    torch.testing.assert_close(
        twin(random(2, length, 3), start), layer(random(2, length, 3), start)
    )


def test_a_tied_weight_is_there_once() -> None:
    model = regard.Transducer(steps=1, settings={"model.encoder.kind": "transformer"}).fit(PAIRS)
    before = size_of(model.model_)
    rounded = quantize(model.model_)
    assert rounded.head.matrix is rounded.target.matrix
    matrices = [m for m in rounded.modules() if isinstance(m, Int8Matrix)]
    rest = sum(4 * p.numel() for p in rounded.parameters())
    assert size_of(rounded) == rest + sum(m.values.numel() + 4 * len(m.scale) for m in matrices)
    assert size_of(rounded) < before / 3


def test_a_single_row_stays_as_it_is() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    assert type(quantize(model)[1]) is nn.Linear


def test_a_broken_weight_is_named() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight.data[2, 2] = float("nan")
    with pytest.raises(UserError, match=r"int8: 1\.weight contains non-finite weights"):
        quantize(model)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> regard.Transducer:
    folder = tmp_path_factory.mktemp("run") / "run"
    settings = {"model.encoder.width": 16, "model.decoder.width": 16}
    return regard.Transducer(steps=3, settings=settings, out=str(folder)).fit(PAIRS)


def exported(trained: regard.Transducer, out: Path) -> dict[str, Any]:
    """An export as `regard export` makes it, without its own check."""
    facts = export(trained.predictor_, out / "regard", "int8")
    trained.save(out / "whole")
    for name in ("config.yaml", "vocabulary"):
        (out / "whole" / name).rename(out / name)
    (out / "export.json").write_text(json.dumps({"format": 1, "engine": "regard", **facts}))
    return facts


def test_an_export_predicts_as_the_int8_model(trained: regard.Transducer, tmp_path: Path) -> None:
    facts = exported(trained, tmp_path)
    there = regard.load(tmp_path)
    here = regard.load(trained.folder_, quantize="int8")
    assert there.predict_detailed(["abc", "d"]) == here.predict_detailed(["abc", "d"])
    assert facts["bytes"] < facts["bytes_before"]
    again = export(there.predictor_, tmp_path / "again", "int8")
    assert again["bytes"] == again["bytes_before"] == facts["bytes"]


def test_an_export_is_requested_by_name(trained: regard.Transducer, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="requires --quantize int8"):
        export(trained.predictor_, tmp_path / "regard")


def test_training_does_not_start_from_an_export(trained: regard.Transducer, tmp_path: Path) -> None:
    exported(trained, tmp_path)
    with pytest.raises(UserError, match="an exported model cannot be trained"):
        regard.Transducer(steps=1).fit(PAIRS, init_from=tmp_path)


def test_weights_that_do_not_fit_are_errors(trained: regard.Transducer, tmp_path: Path) -> None:
    trained.save(tmp_path / "run")
    path = tmp_path / "run" / "config.yaml"
    path.write_text(path.read_text().replace("width: 16", "width: 24"))
    with pytest.raises(UserError, match="the weights do not match"):
        regard.load(tmp_path / "run", quantize="int8")
    (tmp_path / "run" / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(UserError, match="corrupted or truncated"):
        regard.load(tmp_path / "run", quantize="int8")


def test_on_a_gpu_it_is_an_error(
    trained: regard.Transducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "device", lambda: torch.device("cuda", 0))
    with pytest.raises(UserError, match="only supported on CPUs; the model is on cuda:0"):
        regard.load(trained.folder_, quantize="int8")


def test_the_command_line_takes_it(
    trained: regard.Transducer, command: Callable[..., Any], tmp_path: Path
) -> None:
    folder = trained.folder_
    said = command("predict", folder, "abc", "--quantize", "int8")
    assert said.code == 0
    assert said.out.splitlines() == regard.load(folder, quantize="int8").predict(["abc"])
    (tmp_path / "test.tsv").write_text("abc\tcba\n")
    said = command("evaluate", folder, tmp_path / "test.tsv", "--quantize", "int8", "--json")
    true = regard.load(folder, quantize="int8").evaluate([("abc", "cba")])
    assert json.loads(said.out)["metrics"] == pytest.approx(true)
    assert true["perplexity"] != trained.evaluate([("abc", "cba")])["perplexity"]
    said = command("predict", folder, "abc", "--quantize", "int4")
    assert said.code == 2 and "quantize: expected int8 or None, found 'int4'" in said.err
