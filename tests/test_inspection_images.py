"""Inspection of images: saliency, class activation, filters and maps against other computations."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.core.errors import UserError
from regard.data.reading.images import Image
from regard.estimators import Estimator
from regard.nn.capture import Grid
from regard.views.inspection.picture import position_names

RNG = np.random.default_rng(0)
IMAGES = [Image(RNG.integers(0, 256, (6, 8, 3), np.uint8), f"image {n}") for n in range(12)]
LABELS = ["x", "y"] * 6
CONV = {"kind": "conv", "width": 4, "size": 3}
MODELS: dict[str, dict[str, Any]] = {
    "linear": {"encoder": {"kind": "linear"}, "frontend": {"kind": "flat"}},
    "cnn": {
        "encoder": {"kind": "cnn", "blocks": [CONV, {"kind": "pool"}, CONV | {"width": 5}]},
        "pooling": "mean",
    },
    "vit": {
        "encoder": {"kind": "transformer", "layers": 1, "heads": 2, "width": 8},
        "frontend": {"kind": "patches", "patch": 2},
        "pooling": "first",
    },
}


@pytest.fixture(scope="module")
def fitted() -> dict[str, Estimator]:
    """Return a classifier of images per model, trained for two updates."""
    found = {}
    for name, model in MODELS.items():
        settings = {"model": model, "training": {"steps": 2, "batch_tokens": 4}}
        found[name] = regard.Classifier(settings=settings).fit(IMAGES, LABELS)
    return found


def module_of(estimator: Estimator) -> Any:
    return estimator.predictor_.engine.torch_module()


def standardized(estimator: Estimator) -> torch.Tensor:
    """Return the first image as the model reads it, (H, W, C)."""
    source: Any = estimator.predictor_.task.source
    pixels = IMAGES[0].pixels.astype(np.float64)
    return torch.from_numpy((pixels - source.mean) / source.std)


def difference(estimator: Estimator, label: str) -> tuple[torch.Tensor, float]:
    """Return weights and bias of the log odds of a label of two: a difference of logits."""
    head = module_of(estimator).head.linear
    own = estimator.predictor_.task.labels.index(label)
    weight, bias = head.weight.detach().double(), head.bias.detach().double()
    return weight[own] - weight[1 - own], float(bias[own] - bias[1 - own])


def log_odds(found: Any) -> float:
    p = found.steps[0].probability
    return float(np.log(p / (1 - p)))


def test_saliency_of_a_linear_model_is_weight_times_pixel(fitted: dict[str, Estimator]) -> None:
    found = regard.inspect(fitted["linear"], IMAGES[0])
    weight, _ = difference(fitted["linear"], found.target.text)
    pixels = standardized(fitted["linear"])
    temperature = fitted["linear"].predictor_.task.temperature
    expected = (weight.reshape(pixels.shape) * pixels).sum(-1) / temperature
    torch.testing.assert_close(found.picture.saliency[0].double(), expected, atol=1e-5, rtol=1e-4)


def test_class_activation_sums_to_the_log_odds(fitted: dict[str, Estimator]) -> None:
    """With mean pooling and a linear layer: score = bias + mean over cells of weight . map."""
    found = regard.inspect(fitted["cnn"], IMAGES[0])
    weight, bias = difference(fitted["cnn"], found.target.text)
    with torch.no_grad(), regard.capture(fitted["cnn"]) as captured:
        fitted["cnn"].predict([IMAGES[0]])
    maps = captured.maps["encoder.stack.blocks.2"][0].double()
    temperature = fitted["cnn"].predictor_.task.temperature
    expected = (maps * weight).sum(-1) / (maps.shape[0] * maps.shape[1]) / temperature
    assert maps.shape == (3, 4, 5) and found.picture.class_map.name == "encoder.stack.blocks.2"
    torch.testing.assert_close(
        found.picture.class_map.values[0].double(), expected, atol=1e-5, rtol=1e-4
    )
    total = float(expected.sum()) + bias / temperature
    assert total == pytest.approx(log_odds(found), abs=1e-4)


def test_filters_are_the_weights_of_the_first_layer(fitted: dict[str, Estimator]) -> None:
    found = regard.inspect(fitted["cnn"], IMAGES[0]).picture
    conv = module_of(fitted["cnn"]).encoder.stack.blocks[0].conv
    assert found.filters.total == 4
    torch.testing.assert_close(found.filters.values, conv.weight.detach().permute(0, 2, 3, 1))
    sizes = [(one.total, *one.values.shape[1:]) for one in found.maps]
    assert sizes == [(4, 6, 8), (4, 3, 4), (5, 3, 4)]
    fields = [one["field"] for one in found.as_dict()["maps"]]
    assert [(one["start"], one["jump"], one["size"]) for one in fields] == [
        *(([-1, -1], [1, 1], [3, 3]), ([-1, -1], [2, 2], [4, 4]), ([-3, -3], [2, 2], [8, 8])),
    ]
    kept = found.maps[0]
    reader: Any = fitted["cnn"].predictor_.task.source
    x = reader.batch([IMAGES[0]]).data.permute(0, 3, 1, 2)
    expected = torch.relu(torch.nn.functional.conv2d(x, conv.weight, conv.bias, padding=1))[0]
    torch.testing.assert_close(
        kept.values, expected[list(kept.channels)].detach(), atol=1e-5, rtol=0
    )


def test_patches_are_named_by_row_and_column(fitted: dict[str, Estimator]) -> None:
    found = regard.inspect(fitted["vit"], IMAGES[0])
    assert found.source.tokens == ("class", *(f"{y},{x}" for y in (1, 2, 3) for x in (1, 2, 3, 4)))
    assert found.source.tokens == position_names(Grid(3, 4, 1))
    assert found.attention[0].heads.shape == (2, 13, 13)
    assert found.picture.class_map is None and any("no feature maps" in n for n in found.notes)
    assert found.picture.filters.values.shape == (8, 2, 2, 3)


def test_many_positions_are_omitted_by_name(fitted: dict[str, Estimator]) -> None:
    found = regard.inspect(fitted["vit"], IMAGES[0], max_tokens=12)
    assert not found.attention and any("13 positions" in note for note in found.notes)


def test_the_pixels_are_those_of_the_image(fitted: dict[str, Estimator]) -> None:
    pixels = regard.inspect(fitted["cnn"], IMAGES[3]).as_dict()["picture"]["pixels"]
    assert pixels["shape"] == [6, 8, 3]
    assert base64.b64decode(pixels["u8"]) == IMAGES[3].pixels.tobytes()


@pytest.mark.parametrize("view", [None, "picture", "filters", "maps"])
def test_figures_and_pages_are_written(
    fitted: dict[str, Estimator], view: str | None, tmp_path: Path
) -> None:
    found = regard.inspect(fitted["cnn"], IMAGES[0])
    path = tmp_path / ("page.html" if view is None else "figure.png")
    found.save(path, view)
    assert path.stat().st_size > 1000


def test_a_layer_that_does_not_exist_is_rejected(fitted: dict[str, Estimator]) -> None:
    found = regard.inspect(fitted["cnn"], IMAGES[0])
    with pytest.raises(UserError, match=r"feature maps .0-based.: 0, 1, 2"):
        found.figure("maps", layer=3)
