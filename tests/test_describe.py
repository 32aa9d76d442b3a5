"""`regard describe`: runs, recipes and files; as a table, as JSON and as a drawing."""

import json
import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
import pytest
from torch import nn
from typer.testing import CliRunner, Result

import regard
from regard.cli.main_app import app
from regard.config.load import load_config
from regard.data.reading.images import Image
from regard.data.reading.read import Pair
from regard.inputs.graph_frontends import BagProjection
from regard.training.describe import describe as write_metadata
from regard.training.start import start_run
from regard.views.description.describe_model import describe, recurrent_products
from regard.views.description.parts import matrix_products, total


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["describe", *words])


def test_lenet_layer_by_layer() -> None:
    """By hand: (28 + 4 - 5) / 1 + 1 = 28, (14 - 5) / 1 + 1 = 10; 25 x 6 x 16 + 16 weights."""
    found = run("lenet")
    assert found.exit_code == 0
    rows = [line.split("  ") for line in found.stdout.splitlines()]
    cells = {row[0]: [cell.strip() for cell in row[1:] if cell.strip()] for row in rows}
    assert cells["encoder 1 conv"] == [
        *("5 x 5, padding 2", "28 x 28 x 6", "5 x 5", "156", "117,600")
    ]
    assert cells["encoder 3 conv"] == ["5 x 5", "10 x 10 x 16", "14 x 14", "2,416", "240,000"]
    assert cells["encoder 4 pool"][2] == "16 x 16"
    assert "total: 61,706 parameters" in found.stdout
    assert "assumed images of 28 x 28 x 1 (--input)" in found.stderr


def test_json_has_every_part() -> None:
    found = json.loads(run("vit", "--input", "32,32,3", "--outputs", "7", "--json").stdout)
    layers = [part for part in found["parts"] if part["name"].startswith("encoder.layers")]
    assert len(layers) == 4 and layers[0]["output"] == "65 x 64"  # 64 patches and the token
    assert found["parameters"] == sum(part["parameters"] for part in found["parts"])
    assert found["operations_per"] == "image"
    # one layer: 12 D^2 matrices for 65 positions, and 2 S^2 D for scores and means
    assert layers[0]["operations"] == 65 * 12 * 64**2 + 2 * 65**2 * 64


@pytest.mark.parametrize("recipe", ["transformer", "g2p", "tag", "classify", "bahdanau"])
def test_text_models(recipe: str) -> None:
    """Parts with parameters; the operations of a token are the values of the matrices."""
    found = describe(recipe, [50], 20)
    assert found.per == "token" and total(found.parts, "operations") > 0
    assert {part.section for part in found.parts} >= {"frontend", "encoder"}


def test_a_run_has_its_own_names_and_sizes(tmp_path: Path) -> None:
    images = [Image(np.full((10, 12, 3), 20 * i, np.uint8), f"{i}") for i in range(6)]
    pairs = [Pair(image, ("ab"[i % 2],), i) for i, image in enumerate(images)]
    config = load_config("resnet", ["training.steps=1"])
    trained = start_run(tmp_path / "colors", config, pairs, pairs)
    write_metadata(trained, {})
    found = describe(str(tmp_path / "colors"), None, None)
    assert found.name == "colors" and found.input == "images of 10 x 12 x 3"
    assert total(found.parts, "parameters") == trained.parameters and not found.notes
    drawn = tmp_path / "colors.svg"
    assert run(str(tmp_path / "colors"), "--svg", str(drawn)).exit_code == 0
    assert xml.parse(drawn).getroot().tag.endswith("svg")
    again = CliRunner().invoke(app, ["describe", str(tmp_path / "colors"), "--outputs", "3"])
    assert "a run has its sizes" in str(again.exception)


def test_captions_are_described_on_both_sides(tmp_path: Path) -> None:
    model = regard.Transducer  # image to text: the same command
    assert model is not None
    path = tmp_path / "captions.yaml"
    path.write_text("model: {encoder: {kind: cnn}, decoder: {kind: transformer}}\n")
    found = describe(str(path), [16, 16, 3], 9)
    assert {"encoder", "decoder"} <= {part.section for part in found.parts}
    positions = next(part for part in found.parts if part.name == "encoder.positions")
    assert positions.parameters == 4 * 4 * 64
    layer = next(part for part in found.parts if part.name == "decoder.layers.0")
    # a token: 12 D^2 and cross-attention, whose keys and values are computed for all 16 cells
    width, memory = 128, 64
    cross = 2 * width**2 + 16 * 2 * memory * width + 2 * 16 * width
    assert layer.operations == 12 * width**2 + 2 * width + cross


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing",), "neither a file nor a recipe"),
        (("lenet", "--input", "28"), "expected height, width and channels"),
        (("lenet", "--input", "a,b"), "expected integers"),
        (("lenet", "--input", "4,4,1"), "3 conv: a window of size 5 does not fit"),
        (("g2p", "--input", "3,3"), "expected the size of the source vocabulary"),
        (("lenet", "--svg", "a.pdf"), "expected a file name that ends in"),
    ],
)
def test_mistakes(words: tuple[str, ...], message: str) -> None:
    assert message in str(run(*words).exception)


def test_recurrent_layers_have_operations() -> None:
    """An LSTM multiplies by each value of its two matrices, per position."""
    modules = {"one": nn.LSTM(3, 4), "other": nn.LSTM(3, 4), "linear": nn.Linear(3, 4)}
    found = recurrent_products(modules, {"one": "5 x 4", "linear": "5 x 4"})
    assert found == {"one": 5 * (16 * 3 + 16 * 4), "other": 16 * 3 + 16 * 4}
    assert matrix_products(BagProjection(9, 4, True, 0.0)) == 0  # its rows are read
