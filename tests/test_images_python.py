"""Images in Python: arrays, Pillow images and paths; save, load and errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pictures import by_class, draw
from PIL import Image as Pillow
from sklearn.base import clone

import regard
from regard.core.errors import UserError

LABELS = np.array([n % 2 for n in range(24)])
IMAGES = np.stack([draw(n % 2, n) for n in range(24)])
COLORS = np.stack([draw(n % 2, n, channels=3) for n in range(24)])
QUICK: dict[str, Any] = {"epochs": 8, "seed": 1}


@pytest.fixture(scope="module")
def model() -> regard.Classifier:
    return regard.Classifier(**QUICK).fit(IMAGES, LABELS)


def test_arrays(model: regard.Classifier, tmp_path: Path) -> None:
    assert model.predict(IMAGES[:6]).tolist() == [0, 1, 0, 1, 0, 1]
    probabilities = model.predict_proba(IMAGES[:6])
    assert probabilities.shape == (6, 2)
    np.testing.assert_allclose(probabilities.sum(1), 1, atol=1e-6)
    assert model.evaluate(IMAGES, LABELS)["accuracy"] == 100
    assert model.score(IMAGES, LABELS) == 1
    assert not hasattr(model, "n_features_in_")
    model.save(tmp_path / "m")
    loaded = regard.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(IMAGES), model.predict_proba(IMAGES))
    copy = clone(model)
    assert copy.get_params() == model.get_params() and not hasattr(copy, "predictor_")


def test_the_same_images_in_other_forms(model: regard.Classifier, tmp_path: Path) -> None:
    expected = model.predict_proba(IMAGES[:4])
    folder = by_class(tmp_path, 2)
    names = [folder / "cat" / "0.png", folder / "dog" / "1.png"]
    pixels = [draw(0, 0), draw(1, 1)]
    forms: list[Any] = [
        [IMAGES[:4] / 255, list(IMAGES[:4]), [Pillow.fromarray(one) for one in IMAGES[:4]]],
        [IMAGES[:4, ..., None], (IMAGES[:4] / 255).astype(np.float32), IMAGES[:4].astype(int)],
    ]
    for form in [*forms[0], *forms[1]]:
        np.testing.assert_array_equal(model.predict_proba(form), expected)
    expected = model.predict_proba(pixels)
    for files in (names, list(map(str, names))):
        np.testing.assert_array_equal(model.predict_proba(files), expected)


def test_colors_and_paths_in_training(tmp_path: Path) -> None:
    assert regard.Classifier(**QUICK).fit(COLORS, LABELS).predict(COLORS[:2]).tolist() == [0, 1]
    files = sorted(by_class(tmp_path, 12).rglob("*.png"))
    labels = [file.parent.name for file in files]
    model = regard.Classifier(**QUICK).fit(list(map(str, files)), labels)
    assert model.predict(files[:1]).tolist() == ["cat"]
    assert model.predict(IMAGES[:2]).tolist() == ["cat", "dog"]


def test_regressor_and_transducer() -> None:
    brightness = IMAGES.mean((1, 2)) / 255
    model = regard.Regressor(**QUICK).fit(IMAGES, brightness)
    assert model.predict(IMAGES[:3]).shape == (3,)
    texts = [["a cat", "one cat"] if n % 2 == 0 else "a dog" for n in range(24)]
    captions = regard.Transducer(steps=2, seed=1).fit(IMAGES, texts)
    assert all(isinstance(text, str) for text in captions.predict(IMAGES[:3]))
    assert captions.evaluate(IMAGES, texts)["perplexity"] > 1
    assert captions.log_likelihoods(IMAGES[:2], ["a cat", "a dog"])[0]["log_probability"] < 0


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (COLORS.transpose(0, 3, 1, 2), "expected 1 to 4 channels as last dimension, found shape"),
        (COLORS.transpose(0, 3, 1, 2), "np.moveaxis(images, 1, -1)"),
        (np.where(IMAGES > 200, np.nan, 0.5), "example 1: expected finite numbers, found NaN"),
        (IMAGES * 1.0, "example 1: expected floats from 0 to 1, found 0 to"),
        (IMAGES.astype(int) - 1, "expected integers from 0 to 255, found -1"),
        (IMAGES.astype(complex), "expected numbers, found complex128"),
        (COLORS[:, None], "expected an array (H, W) or (H, W, C), found (1, 8, 8, 3)"),
        ([*IMAGES[:23], "text"], "example 24: expected an image as in example 1, found a text"),
        ([*IMAGES[:23], IMAGES[0, :4]], "example 24: expected 8x8, 1 channel as"),
        ([Path("gone.png")] * 24, "example 1: gone.png: no such file"),
    ],
)
def test_bad_training_images(images: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        regard.Classifier(**QUICK).fit(images, LABELS)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (IMAGES[:, :4], "example 1: expected 8x8, 1 channel as in training, found 4x8, 1 channel"),
        (COLORS, "example 1: expected 8x8, 1 channel as in training, found 8x8, 3 channels"),
        (["a", "b"], "X: expected images as in training, found texts; a: no such file"),
        ([[0.5, 1.0]], "X: expected images as in training, found numbers"),
    ],
)
def test_bad_images_for_a_model(model: regard.Classifier, images: Any, message: str) -> None:
    with pytest.raises(UserError) as error:
        model.predict(images)
    assert message in str(error.value)


def test_one_image_is_no_array_of_images() -> None:
    settings = {"task.source.size": [8, 8], "task.source.channels": 3}
    model = regard.Classifier(steps=1, seed=1, settings=settings).fit(IMAGES, LABELS)
    for image in (draw(0, 0, (16, 16), 3), draw(0, 0, (16, 16))[..., None], COLORS[0]):
        with pytest.raises(UserError, match=r"expected an array of images \(N, H, W, C\), found"):
            model.predict(image)
        assert len(model.predict([image])) == 1
    assert len(model.predict(IMAGES[:5])) == 5
    assert len(model.predict(np.zeros((4, 16, 16), np.uint8))) == 4


def test_images_for_a_model_of_texts() -> None:
    model = regard.Classifier(steps=1).fit(["a b", "c d", "a e", "c f"], ["x", "y", "x", "y"])
    with pytest.raises(UserError, match="expected texts as in training, found images"):
        model.predict(IMAGES)
