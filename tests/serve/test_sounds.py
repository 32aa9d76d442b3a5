"""Sounds in requests: WAV and FLAC as base64, with their limits and errors."""

import base64
import io
from collections.abc import Iterator
from typing import Any

import corpora
import numpy as np
import pytest
from starlette.testclient import TestClient

import regard
from regard.data.reading.sounds import Sound
from regard.estimators import Estimator
from regard.serve.app import build_app
from regard.serve.settings import ServeSettings

TONES = [corpora.tone(bool(n % 2), n) for n in range(8)]
SAMPLES = 6_000  # limit of the server


@pytest.fixture(scope="module")
def classifier() -> Estimator:
    """Return a small classifier of tones at 8,000 Hz."""
    settings = {"model.encoder.width": 8, "model.encoder.layers": 1, "training.steps": 2}
    model = regard.Classifier(settings=settings, rate=8000)
    return model.fit(TONES, ["down", "up"] * 4)


@pytest.fixture(scope="module")
def sounds(classifier: Estimator) -> Iterator[TestClient]:
    """Return a client of a server with a model of sounds."""
    app = build_app({"tones": classifier}, ServeSettings(max_file_values=SAMPLES))
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


def encoded(data: bytes, media: str = "audio/wav") -> dict[str, str]:
    return {"data": base64.b64encode(data).decode(), "type": media}


def wav(samples: np.ndarray = TONES[0]) -> dict[str, str]:
    return encoded(corpora.wav(samples))


def flac(samples: np.ndarray, rate: int = 8000) -> dict[str, str]:
    out = io.BytesIO()
    pytest.importorskip("soundfile").write(out, samples, rate, format="FLAC")
    return encoded(out.getvalue(), "audio/flac")


def test_predictions_of_files_are_those_of_arrays(sounds: TestClient, classifier: Any) -> None:
    inputs = [wav(TONES[0]), flac(TONES[1]), wav(TONES[2]), flac(TONES[3])]
    response = sounds.post("/predict", json={"inputs": inputs})
    assert response.status_code == 200, response.text
    expected = classifier.predict_detailed(TONES[:4])
    for one, other in zip(response.json()["predictions"], expected, strict=True):
        assert one["text"] == other.text
        assert one["probabilities"] == pytest.approx(other.probabilities, abs=1e-4)


def test_other_rates_are_resampled(sounds: TestClient, classifier: Any) -> None:
    tone = TONES[0][: SAMPLES // 2]
    (found,) = sounds.post("/predict", json={"inputs": [flac(tone, 4000)]}).json()["predictions"]
    (expected,) = classifier.predict_detailed([Sound(tone, 4000, "a")])
    assert found["probabilities"] == pytest.approx(expected.probabilities, abs=1e-4)


def test_every_route_takes_a_sound(sounds: TestClient) -> None:
    streamed = sounds.post("/stream", json={"input": wav()})
    assert streamed.status_code == 200 and "event: result" in streamed.text
    inspected = sounds.post("/inspect", json={"input": wav()}).json()
    assert inspected["sound"]["rate"] == 8000


def test_models_tell_what_they_read(sounds: TestClient) -> None:
    (model,) = sounds.get("/models").json()["models"]
    assert {key: model["reads"][key] for key in ("kind", "rate")} == {"kind": "sound", "rate": 8000}
    assert {"audio/wav", "audio/flac", "audio/ogg", "audio/mpeg"} <= set(model["reads"]["media"])


LONG = np.tile(TONES[0], 3)


@pytest.mark.parametrize(
    ("file", "status", "message"),
    [
        (encoded(corpora.wav(TONES[0])[:-9]), 422, "inputs.1: truncated WAV file: the header"),
        (encoded(b"RIFF"), 422, "inputs.1: expected a sound"),
        (encoded(b"hello", "audio/flac"), 422, "inputs.1: expected a sound"),
        (wav() | {"type": "audio/flac"}, 422, "the content is audio/wav"),
        (wav() | {"type": "image/png"}, 422, "inputs.1.type: expected audio/"),
        (
            wav(LONG),
            422,
            f"inputs.1: expected at most 6,000 pixels or samples, found {len(LONG):,}",
        ),
        (wav(TONES[0][:100]), 400, "inputs.1: recording of 12 ms: expected at least one window"),
        (wav(TONES[0] * 0), 400, "inputs.1: the recording is silent"),
    ],
    ids=["truncated", "cut", "text", "format", "image", "long", "short", "silent"],
)
def test_errors_name_the_sound(
    sounds: TestClient, file: dict[str, str], status: int, message: str
) -> None:
    response = sounds.post("/predict", json={"inputs": [wav(), file]})
    assert response.status_code == status, response.text
    assert message in response.json()["error"]


def test_a_long_flac_is_rejected_by_its_header(sounds: TestClient) -> None:
    response = sounds.post("/predict", json={"inputs": [flac(LONG)]})
    assert response.status_code == 422
    assert f"expected at most 6,000 pixels or samples, found {len(LONG):,}" in response.text
