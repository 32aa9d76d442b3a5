"""Sounds in requests: WAV and FLAC as base64, with their limits and errors."""

import base64
import io
import struct
from collections.abc import Iterator
from typing import Any

import corpora
import numpy as np
import pytest
from starlette.testclient import TestClient

import regard
from regard.data.reading.sounds import Sound
from regard.estimators import Estimator
from regard.inputs.sound_options import Sounds
from regard.serve.app import build_app
from regard.serve.cost import INSPECT_PASSES, inspect_cost, predict_cost
from regard.serve.jobs import PredictHandler
from regard.serve.request_sources import FileSource
from regard.serve.served_models import ServedModel
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


def low_rate(samples: np.ndarray) -> bytes:
    """A WAV file of 1,000 Hz."""
    return corpora.wav(samples).replace(struct.pack("<I", 8000), struct.pack("<I", 1000), 1)


def test_a_low_rate_does_not_hide_a_long_sound(sounds: TestClient) -> None:
    """Resampling to 8,000 Hz multiplies its samples."""
    for samples, status in ((TONES[0][:750], 200), (TONES[0][:751], 422)):
        response = sounds.post("/predict", json={"inputs": [encoded(low_rate(samples))]})
        assert response.status_code == status, response.text
    assert "inputs.0: expected at most 6,000 pixels or samples, found 6,008" in response.text
    bad = corpora.wav(TONES[0]).replace(struct.pack("<I", 8000), struct.pack("<I", 0), 1)
    response = sounds.post("/predict", json={"inputs": [encoded(bad)]})
    assert response.status_code == 422 and "sampling rate of 0 Hz" in response.text


def test_the_length_of_a_sound_is_that_of_its_row() -> None:
    source = Sounds(rate=8000).fit([Sound(TONES[0], 8000, "a")], "x", [])[0]
    for data, rate in ((corpora.wav(TONES[0]), 8000), (low_rate(TONES[0]), 1000)):
        length = len(source.encode([Sound(TONES[0], rate, "a")]).row(0))
        size = source.declared_size(data, "audio/wav", "a")
        assert size == (len(TONES[0]) * 8000 // rate, 40 * length, length)


def test_long_sounds_cost_more() -> None:
    """The maximum output length, and with it the work, depends on the number of windows."""
    settings = {"model.encoder.width": 8, "model.decoder.width": 8, "training.steps": 2}
    model = regard.Transducer(settings=settings, rate=8000).fit(TONES, ["down", "up"] * 4)
    predictor = model.predictor_
    handler = PredictHandler(ServedModel("m", predictor), predictor.search_options(beam=1))
    noise = np.random.default_rng(0).integers(-9000, 9000, 20 * 8000, np.int16)
    for samples in (TONES[0], noise):
        size = predictor.task.source.declared_size(corpora.wav(samples), "audio/wav", "a")
        source = FileSource(b"", "audio/wav", "a", size)
        steps = predictor.task.max_output_length(size.length + 1, handler.search)
        assert predict_cost(handler, source) == source.cost + steps
        passes = inspect_cost(handler, source, None, 100_000) / (size.length * steps)
        assert passes > INSPECT_PASSES
    app = build_app({"words": model}, ServeSettings(max_work=steps, max_file_values=10**6))
    with TestClient(app, raise_server_exceptions=False) as client:
        for samples, status in ((TONES[0], 200), (noise, 422)):
            body = {"inputs": [wav(samples)], "search": {"beam": 1}}
            response = client.post("/predict", json=body)
            assert response.status_code == status, response.text
        body = {"inputs": [wav(noise)] * 9, "return_alignment": True}
        assert "attention weights per request" in client.post("/predict", json=body).text


def test_a_long_flac_is_rejected_by_its_header(sounds: TestClient) -> None:
    response = sounds.post("/predict", json={"inputs": [flac(LONG)]})
    assert response.status_code == 422
    assert f"expected at most 6,000 pixels or samples, found {len(LONG):,}" in response.text
