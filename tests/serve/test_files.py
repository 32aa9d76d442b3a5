"""Files in requests: images as base64 next to texts, with their limits and errors."""

import base64
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import regard
from regard.core.png import encode_png
from regard.data.reading.images import Image
from regard.estimators import Estimator
from regard.serve.app import build_app
from regard.serve.settings import ServeSettings

from . import fuzz_cases
from .test_fuzz import check_response

RNG = np.random.default_rng(0)
IMAGES = [Image(RNG.integers(0, 256, (6, 8, 1), np.uint8), f"image {n}") for n in range(8)]
PIXELS = 4_000  # limit of the server


@pytest.fixture(scope="module")
def classifier() -> Estimator:
    """Return a small classifier of grayscale images of 6 x 8 pixels."""
    blocks = [{"kind": "conv", "width": 3, "size": 3}]
    settings = {"model": {"encoder": {"kind": "cnn", "blocks": blocks}}, "training": {"steps": 2}}
    return regard.Classifier(settings=settings).fit(IMAGES, ["x", "y"] * 4)


@pytest.fixture(scope="module")
def files(classifier: Estimator, estimators: dict[str, Estimator]) -> Iterator[TestClient]:
    """Return a client of a server with a model of images and one of texts."""
    models = {"images": classifier, "texts": estimators["classify"]}
    limits = ServeSettings(max_file_values=PIXELS, max_texts=5)
    with TestClient(build_app(models, limits), raise_server_exceptions=False) as client:
        yield client


def encoded(data: bytes, media: str = "image/png") -> dict[str, str]:
    return {"data": base64.b64encode(data).decode(), "type": media}


def png(index: int = 0) -> dict[str, str]:
    return encoded(encode_png(IMAGES[index].pixels))


def bomb() -> bytes:
    """Return a PNG file whose header declares 100,000 x 100,000 pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


def test_predictions_of_files_are_those_of_arrays(files: TestClient, classifier: Any) -> None:
    response = files.post("/predict", json={"inputs": [png(index) for index in range(4)]})
    assert response.status_code == 200, response.text
    expected = classifier.predict_detailed(IMAGES[:4])
    for one, other in zip(response.json()["predictions"], expected, strict=True):
        assert one["text"] == other.text
        assert one["probabilities"] == pytest.approx(other.probabilities, abs=1e-4)


def test_every_route_takes_a_file(files: TestClient) -> None:
    streamed = files.post("/stream", json={"input": png()})
    assert streamed.status_code == 200 and "event: result" in streamed.text
    inspected = files.post("/inspect", json={"input": png()}).json()
    assert inspected["picture"]["pixels"]["shape"] == [6, 8, 1]
    assert base64.b64decode(inspected["picture"]["pixels"]["u8"]) == IMAGES[0].pixels.tobytes()


def test_models_tell_what_they_read(files: TestClient) -> None:
    images, texts = files.get("/models").json()["models"]
    sizes = {key: images["reads"][key] for key in ("kind", "height", "width", "channels")}
    assert sizes == {"kind": "image", "height": 6, "width": 8, "channels": 1}
    assert "image/png" in images["reads"]["media"]
    assert texts["reads"] == {"kind": "text", "media": []}


def test_openapi_requires_either_texts_or_inputs(files: TestClient) -> None:
    schema = files.get("/openapi.json").json()["components"]["schemas"]["PredictRequest"]
    assert schema["oneOf"] == [{"required": ["texts"]}, {"required": ["inputs"]}]
    assert schema["properties"]["inputs"]["maxItems"] == 5


LARGE = encoded(encode_png(np.zeros((64, 64, 1), np.uint8)))
OTHER_SIZE = encoded(encode_png(np.zeros((6, 9, 1), np.uint8)))
BROKEN = encoded(encode_png(IMAGES[0].pixels)[:60])


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"texts": ["/etc/passwd"]}, 422, "texts: model images reads files"),
        ({"model": "texts", "inputs": [png()]}, 422, "inputs: model texts reads texts"),
        ({}, 422, "expected either texts or inputs, found neither"),
        ({"texts": ["a"], "inputs": [png()]}, 422, "found both"),
        ({"inputs": [png() | {"type": "text/plain"}]}, 422, "inputs.0.type: expected image/bmp"),
        ({"inputs": [png() | {"data": "%%%"}]}, 422, "inputs.0.data: expected the bytes"),
        ({"inputs": [png() | {"type": "image/jpeg"}]}, 422, "the content is image/png"),
        ({"inputs": [png(), encoded(b"hello")]}, 422, "inputs.1: expected an image"),
        ({"inputs": [png(), BROKEN]}, 400, "inputs.1: corrupted or truncated PNG file"),
        ({"inputs": [png(), OTHER_SIZE]}, 400, "inputs.1: expected 6x8, 1 channel"),
        ({"inputs": [LARGE]}, 422, "inputs.0: expected at most 4,000 pixels"),
        ({"inputs": [encoded(bomb())]}, 422, "inputs.0: image"),
        ({"inputs": [png()] * 6}, 422, "inputs: expected at most 5 files, found 6"),
    ],
)
def test_errors_name_the_file(
    files: TestClient, body: dict[str, Any], status: int, message: str
) -> None:
    response = files.post("/predict", json=body)
    assert response.status_code == status, response.text
    assert message in response.json()["error"]


@pytest.mark.parametrize("path", ["/predict", "/stream", "/inspect"])
def test_no_file_causes_an_internal_error(files: TestClient, path: str) -> None:
    for file in fuzz_cases.FILES:
        body = {"inputs": [file]} if path == "/predict" else {"input": file}
        data = fuzz_cases.encoded(body)
        check_response(files.post(path, content=data, headers={"content-type": "application/json"}))


def test_pixels_and_files_add_to_the_cost(classifier: Any) -> None:
    from regard.inputs.file_size import FileSize
    from regard.serve.cost import predict_cost
    from regard.serve.jobs import PredictHandler
    from regard.serve.request_sources import FileSource
    from regard.serve.served_models import ServedModel

    predictor = classifier.predictor_
    handler = PredictHandler(ServedModel("m", predictor), predictor.search_options())
    small, large = (
        predict_cost(
            handler, FileSource(b"", "image/png", "inputs.0", FileSize(pixels, 150_528, 36))
        )
        for pixels in (1_000, 1_000_000)
    )
    assert 100 < small < large < 2_000
