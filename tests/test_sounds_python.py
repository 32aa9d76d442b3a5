"""Sounds in Python: arrays with a rate, paths, `Sound`; save, load and errors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.core.errors import UserError
from regard.data.reading.sounds import Sound, from_array

QUICK: dict[str, Any] = {"epochs": 12, "seed": 1, "rate": 8000}
SMALL = {
    "training.batch_tokens": 80,
    "training.lr": 0.01,
    "model.encoder.width": 16,
    "model.encoder.layers": 1,
    "model.frontend.channels": 4,
}


def tone(rises: bool, seed: int) -> np.ndarray:
    """A tone from 300 to 2,000 Hz or back, with noise, from -1 to 1, of some length."""
    random = np.random.default_rng(seed)
    time = np.arange(1600 + 40 * seed) / 8000
    hertz = np.linspace(300, 2000, len(time))
    wave = np.sin(2 * np.pi * np.cumsum(hertz if rises else hertz[::-1]) / 8000) * 0.4
    return (wave + random.normal(0, 0.02, len(time))).astype(np.float32)


LABELS = np.array([n % 2 for n in range(24)])
TONES = [tone(bool(n % 2), n) for n in range(24)]


@pytest.fixture(scope="module")
def model() -> regard.Classifier:
    return regard.Classifier(settings=SMALL, **QUICK).fit(TONES, LABELS)


def test_arrays_and_a_rate(model: regard.Classifier, tmp_path: Path) -> None:
    assert model.predict(TONES[:6]).tolist() == [0, 1, 0, 1, 0, 1]
    assert not hasattr(model, "n_features_in_")
    model.save(tmp_path / "m")
    loaded = regard.load(tmp_path / "m")  # arrays then have the rate of the model
    np.testing.assert_array_equal(loaded.predict_proba(TONES), model.predict_proba(TONES))


def test_other_forms_of_the_same_sounds(model: regard.Classifier, tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    whole = [np.rint(one * 32768).astype(np.int16) for one in TONES[:3]]
    expected = model.predict_proba(TONES[:3])
    for index, values in enumerate(whole):
        soundfile.write(tmp_path / f"{index}.wav", values, 8000)
    files = [tmp_path / f"{index}.wav" for index in range(3)]
    sounds = [Sound(values, 8000, "a") for values in whole]
    stereo = [np.stack([values, values], 1) for values in whole]
    forms: list[Any] = [whole, sounds, stereo, files, list(map(str, files))]
    for form in forms:
        np.testing.assert_array_equal(model.predict_proba(form), expected)


def test_names_of_files_among_arrays_and_without_suffix(
    model: regard.Classifier, tmp_path: Path
) -> None:
    soundfile = pytest.importorskip("soundfile")
    path = tmp_path / "a.wav"
    soundfile.write(path, np.rint(TONES[0] * 32768).astype(np.int16), 8000)
    plain = path.rename(tmp_path / "plain")
    path.write_bytes(plain.read_bytes())
    expected = model.predict_proba([TONES[0], TONES[1]])
    for first in (path, str(path), plain, str(plain)):
        np.testing.assert_array_equal(model.predict_proba([first, TONES[1]]), expected)
        np.testing.assert_allclose(model.predict_proba([first]), expected[:1], atol=1e-6)
    (tmp_path / "b.m4a").write_bytes(b"\0\0\0\x20ftypM4A " + b"\1" * 99)
    for rows in (["b.m4a"], [Path("b.m4a")], ["b.m4a", TONES[0]]):
        named = [one if isinstance(one, np.ndarray) else type(one)(tmp_path / one) for one in rows]
        with pytest.raises(UserError, match=r"^example 1: .*b\.m4a: expected a sound .*M4A or MP4"):
            model.predict(named)
    with pytest.raises(UserError, match=r"^example 2: .*no\.wav: no such file"):
        model.predict([str(path), str(tmp_path / "no.wav")])


def test_arrays_of_any_byte_order() -> None:
    whole = np.rint(TONES[0] * 32768).astype(np.int16)
    for values in (whole.astype(">i2"), (whole / 32768).astype(">f4")):
        assert from_array(values, 8000, "a") == Sound(whole, 8000, "b")


def test_a_fit_does_not_depend_on_the_rate_of_an_earlier_one(
    model: regard.Classifier, tmp_path: Path
) -> None:
    model.save(tmp_path / "m")
    loaded = regard.load(tmp_path / "m", kind=regard.Classifier).set_params(steps=1)
    assert loaded.evaluate(TONES, LABELS) == model.evaluate(TONES, LABELS)
    vectors = np.random.default_rng(0).normal(size=(24, 5))
    assert loaded.fit(vectors, LABELS, dev=(vectors, LABELS)).n_features_in_ == 5
    assert len(loaded.predict(vectors)) == 24


def test_words_for_tones() -> None:
    words = ["up" if label else "down" for label in LABELS]
    settings = {"model.encoder.width": 16, "model.decoder.width": 16}
    model = regard.Transducer(settings=settings, steps=5, rate=8000).fit(TONES, words)
    assert len(model.predict(TONES[:2])) == 2
    assert set(model.evaluate(TONES, words)) >= {"cer", "wer"}


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([TONES[0], np.zeros(900, np.float32)], "example 2: the recording is silent"),
        ([TONES[0], TONES[1][:100]], "example 2: recording of 12 ms: expected at least one window"),
        ([TONES[0] * 9], "example 1: expected floats from -1 to 1"),
        ([TONES[0], [[1.0, 2.0], [3.0]]], "example 2: .* found parts of different lengths"),
        ([TONES[0], np.ones(1, np.int16)], "example 2: recording of 0 ms: expected at least one"),
        (["a text"], "example 1: a text: no such file"),
    ],
)
def test_bad_sounds(model: regard.Classifier, X: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        model.predict(X)
