"""Sounds: formats, bad files, conversions, and what is counted."""

import builtins
import io
import struct
import wave
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.core.errors import UserError
from regard.data.checks.check_sounds import sound_stats
from regard.data.reading.sound_files import declared_size, decode_sound, read_sound
from regard.data.reading.sounds import Sound, Speaker, from_array
from regard.data.sources.open import DataSpec
from regard.inputs import fit_input
from regard.inputs.sound_frontends import FramesFrontendOptions
from regard.inputs.sound_options import Sounds
from regard.inputs.voices import voice_mean
from regard.tasks.classify_options import ClassifyOptions

soundfile = pytest.importorskip("soundfile")
SAMPLES = (np.sin(np.arange(1600) / 3) * 9000).astype(np.int16)


def wav(values: Any = SAMPLES, rate: int = 8000, bytes_each: int = 2) -> bytes:
    """A WAV file that the standard library writes. values: (T,) or (T, channels)."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1 if values.ndim == 1 else values.shape[1])
        file.setsampwidth(bytes_each)
        file.setframerate(rate)
        file.writeframes(values.tobytes())
    return out.getvalue()


def coded(form: str, kind: str = "", values: np.ndarray = SAMPLES) -> bytes:
    out = io.BytesIO()
    values = values / 32768 if kind in ("FLOAT", "DOUBLE") else values
    soundfile.write(out, values, 8000, format=form, subtype=kind or None)
    return out.getvalue()


@pytest.mark.parametrize("form", ["WAV", "FLAC", "AIFF", "AU"])
def test_lossless_formats(form: str) -> None:
    found = decode_sound(coded(form), "a")
    assert np.array_equal(found.samples, SAMPLES) and found.rate == 8000
    assert declared_size(coded(form), "a") == (1600, 1, 8000)


@pytest.mark.parametrize(("form", "kind"), [("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "")])
def test_lossy_formats(form: str, kind: str) -> None:
    found = decode_sound(coded(form, kind), "a")
    assert found.seconds == pytest.approx(0.2, abs=0.15)
    assert abs(found.samples).max() > 4000


@pytest.mark.parametrize(
    ("kind", "tolerance"),
    [("PCM_U8", 256), ("PCM_24", 1), ("PCM_32", 1), ("FLOAT", 1), ("DOUBLE", 1), ("ULAW", 300)],
)
def test_wav_of_other_precisions(kind: str, tolerance: int) -> None:
    found = decode_sound(coded("WAV", kind), "a")
    assert abs(found.samples.astype(int) - SAMPLES).max() <= tolerance


def test_plain_wav_needs_no_package_others_do(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "soundfile":
            raise ImportError(name)
        return real(name, *rest)

    flac = coded("FLAC")
    monkeypatch.setattr(builtins, "__import__", without)
    assert np.array_equal(decode_sound(wav(), "a").samples, SAMPLES)
    with pytest.raises(UserError, match=r"a\.flac: FLAC files need .*\nhelp: pip install 'regard"):
        decode_sound(flac, "a.flac")


def test_channels_are_averaged_and_counted() -> None:
    changes: Counter[str] = Counter()
    both = np.stack([SAMPLES, np.zeros_like(SAMPLES)], 1)
    found = decode_sound(wav(both), "a", changes)
    assert abs(found.samples - SAMPLES / 2).max() <= 0.5
    assert changes == {"stereo or multichannel recordings, channels averaged": 1}
    assert abs(from_array(both, 8000, "b").samples - SAMPLES / 2).max() <= 0.5


def test_a_wrong_suffix_is_counted() -> None:
    changes: Counter[str] = Counter()
    assert decode_sound(coded("FLAC"), "x.wav", changes) == decode_sound(wav(), "x.flac", changes)
    assert changes == {"sounds named .wav, read as FLAC": 1, "sounds named .flac, read as WAV": 1}
    with pytest.raises(UserError, match="declared as audio/wav, but the content is audio/flac"):
        decode_sound(coded("FLAC"), "x", media="audio/wav")


def lying(size: int) -> bytes:
    """A WAV file whose header declares so many bytes of samples."""
    data = bytearray(wav())
    struct.pack_into("<I", data, 40, size)
    return bytes(data)


def flac_with_count(count: int) -> bytes:
    """A FLAC file whose header declares so many samples."""
    data = bytearray(coded("FLAC"))
    assert data[:4] == b"fLaC" and data[4] & 127 == 0
    data[21] = (data[21] & 0xF0) | count >> 32
    struct.pack_into(">I", data, 22, count & 0xFFFFFFFF)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"hello, world", "expected a sound .*found text"),
        (b"\x00\xff" * 99, "expected a sound .*found other data"),
        (wav()[:30], "corrupted WAV file: the format is too short"),
        (wav()[:44], r"truncated WAV file: the header declares 3,200 bytes of samples, found 0"),
        (wav()[:-7], r"truncated WAV file: .* 3,200 bytes of samples, found 3,193"),
        (
            lying(2_000_000_000),
            r"truncated WAV file: the header declares 2,000,000,000 bytes of samples, found 3,200",
        ),
        (wav(SAMPLES[:0]), "the recording has no samples"),
        (wav(SAMPLES * 0), r"the recording is silent: all 1,600 samples are 0"),
        (wav(rate=7), "sampling rate of 7 Hz: expected 1,000 to 768,000"),
        (coded("FLAC")[:40], "corrupted or truncated FLAC file"),
        (coded("FLAC")[:-100], "(corrupted or )?truncated FLAC file"),
        (flac_with_count(1 << 35), "recording of 34,359,738,368 samples: expected at most"),
        (flac_with_count(1 << 25), "(corrupted or )?truncated FLAC file"),
        (b"OggS" + b"\0" * 99, "corrupted or truncated OGG file"),
        (coded("WAV", "FLOAT", np.full(900, np.nan)), "expected finite samples, found NaN"),
    ],
)
def test_bad_files_are_errors_with_a_reason(data: bytes, message: str) -> None:
    with pytest.raises(UserError, match=f"^bad.wav: {message}") as error:
        decode_sound(data, "bad.wav")
    assert error.value.help


def test_a_wav_of_unknown_length_is_read_to_its_end() -> None:
    """As programs write that cannot go back in a pipe."""
    assert np.array_equal(decode_sound(lying(0xFFFFFFFF), "a").samples, SAMPLES)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_sound(str(tmp_path / "no.wav"))
    with pytest.raises(UserError, match="expected a sound, found a folder"):
        read_sound(str(tmp_path))


def sound(seconds: float, rate: int = 8000) -> Sound:
    values = np.random.default_rng(0).integers(-9000, 9000, round(seconds * rate), np.int16)
    return Sound(values, rate, f"{seconds}.wav")


def test_the_most_common_rate_is_chosen_and_said() -> None:
    auto: list[Any] = []
    made, options = fit_input(Sounds(), [sound(0.1), sound(0.2), sound(0.1, 44100)], "x", auto)
    assert options.rate == 8000 and options.bands == 40
    assert [str(one.value) for one in auto] == ["8000"]
    assert auto[0].reason == "most common; converts 1 of 44,100 Hz"
    assert len(made.encode([sound(0.1, 44100)]).row(0)) == 8
    auto = []
    made, options = fit_input(Sounds(), [sound(0.1, 44100)], "x", auto)
    assert options.rate == 16000 and options.bands == 80
    assert auto[0].reason == "enough for speech; converts 1 of 44,100 Hz"


def test_too_short_for_a_window_is_an_error() -> None:
    made, _ = fit_input(Sounds(), [sound(0.1)], "x", [])
    expected = r"0.02.wav: recording of 20 ms: expected at least one window of 25 ms"
    with pytest.raises(UserError, match=expected):
        made.encode([sound(0.02)])
    with pytest.raises(UserError, match=expected):
        Sounds().prepare(sound(0.02), Counter())
    with pytest.raises(UserError, match="recording of 20 ms"):
        made.decode(wav(SAMPLES[:160]), "audio/wav", "a")


def test_conversions_are_counted() -> None:
    changes: Counter[str] = Counter()
    assert Sounds(rate=16000).prepare(sound(0.1), changes).rate == 16000
    assert changes == {"sounds of 8,000 Hz converted to 16,000 Hz": 1}


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(900, np.float32), "silent"),
        (np.ones(900) * 2, "expected floats from -1 to 1, found 2 to 2"),
        (np.full(900, np.nan), "expected finite samples, found NaN or infinity"),
        ([[1.0, 2.0], [3.0]], r"^example 1: expected .*, found parts of different lengths"),
        ((8000, SAMPLES), r"^example 1: expected .*, found parts of different lengths"),
        (np.ones(900, np.int32), "expected 16-bit integers or floats"),
        (np.ones((3, 900)), r"expected samples \(T,\) or \(T, channels\), found shape \(3, 900\)"),
    ],
)
def test_bad_arrays(array: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_array(array, 8000, "example 1")


def test_arrays_need_a_rate() -> None:
    with pytest.raises(UserError, match="expected a sampling rate in Hz, found None"):
        from_array(SAMPLES, None, "example 1")


def test_statistics_of_the_training_set() -> None:
    """Over all windows of all recordings."""
    sources = [sound(0.3), sound(0.1)]
    made, _ = fit_input(Sounds(normalize="global"), sources, "x", [])
    rows = np.concatenate([made.analyze(one) for one in sources])
    np.testing.assert_allclose(made.shape.scale[0], rows.mean(0), rtol=1e-4)
    np.testing.assert_allclose(made.shape.scale[1], rows.std(0), rtol=1e-3)


def test_the_mean_of_each_recording_is_subtracted() -> None:
    """The deviation is that of the training set, around the means of its recordings."""
    sources = [sound(0.3), sound(0.1)]
    made, options = fit_input(Sounds(), sources, "x", [])
    rows = [made.analyze(one).astype(np.float64) for one in sources]
    rows = [row - np.average(row, 0, np.sqrt(np.exp(row).sum(1))) for row in rows]
    mean, std = (getattr(np.concatenate(rows), name)(0) for name in ("mean", "std"))
    assert options.normalize == "mean"
    np.testing.assert_allclose(made.shape.scale[0], mean, atol=1e-4)
    np.testing.assert_allclose(made.shape.scale[1], std, rtol=1e-3)
    frontend = FramesFrontendOptions().build(made.shape, 40, 1.0, 0.0, direct=True).eval()
    found = frontend(made.batch(sources)).data
    for index, row in enumerate(rows):
        expected = (row - mean) / std
        np.testing.assert_allclose(found[index, : len(row)].numpy(), expected, atol=0.02)


def test_pauses_hardly_count() -> None:
    """A recording has nearly the same features with a long pause after it."""
    short = sound(0.2)
    faint = np.random.default_rng(0).integers(-3, 4, 4000).astype(np.int16)
    long = Sound(np.concatenate([short.samples, faint]), short.rate, "long")
    made, _ = fit_input(Sounds(), [short, long], "x", [])
    first, second = made.features(short), made.features(long)
    apart = np.abs(second[: len(first) - 3] - first[:-3]).max()
    plain = np.abs(made.analyze(short).mean(0) - made.analyze(long).mean(0)).max()
    assert plain > 1 and apart < 0.2 * plain


def test_statistics_of_speakers() -> None:
    """The mean over all recordings of a speaker is subtracted."""
    loud, faint = Speaker("loud"), Speaker("faint")
    for speaker, level in ((loud, 9000), (faint, 90)):
        for seed in range(2):
            values = np.random.default_rng(seed).integers(-level, level, 2400, np.int16)
            speaker.sounds.append(Sound(values, 8000, "a", speaker))
    sources = [*loud.sounds, *faint.sounds]
    made, options = fit_input(Sounds(), sources, "x", [])
    assert options.normalize == "speaker"
    mean, std = made.shape.scale
    rows = [made.analyze(one).astype(np.float64) for one in sources]
    own = [np.concatenate(rows[first : first + 2]).mean(0) for first in (0, 0, 2, 2)]
    centered = [row - one for row, one in zip(rows, own, strict=True)]
    np.testing.assert_allclose(mean, 0, atol=1e-4)
    np.testing.assert_allclose(std, np.concatenate(centered).std(0), rtol=1e-3)
    encoded = made.encode(sources)
    for index, row in enumerate(centered):
        np.testing.assert_allclose(encoded.row(index), row, atol=0.02)
    with pytest.raises(UserError, match="the data has no speakers"):
        fit_input(Sounds(normalize="speaker"), [sound(0.1)], "x", [])


def test_the_mean_of_an_unknown_speaker_is_estimated(tmp_path: Path) -> None:
    """By least squares per band, from the recordings of the known speakers."""
    speakers = [Speaker(name) for name in "abc"]
    for number, speaker in enumerate(speakers):
        for seed in range(3):
            level = 30 * 10**number
            values = np.random.default_rng(seed).integers(-level, level, 2000 + 400 * seed)
            speaker.sounds.append(Sound(values.astype(np.int16), 8000, "a", speaker))
    sources = [one for speaker in speakers for one in speaker.sounds]
    made, options = fit_input(Sounds(), sources, "x", [])
    own = np.stack([voice_mean(made.analyze(one)) for one in sources])
    goal = np.stack([made.speaker_mean(one.speaker) for one in sources])
    for band in (0, 17, 39):
        slope, bias = np.polyfit(own[:, band], goal[:, band], 1)
        assert 0 < slope <= 1.001
        assert made.voice.slope[band] == pytest.approx(min(slope, 1.0), abs=1e-3)
        assert made.voice.bias[band] == pytest.approx(bias, abs=0.01 + abs(slope - 1) * 20)
    stranger = Sound(sources[4].samples, 8000, "b")
    apart = made.features(stranger) - made.features(sources[4])
    assert np.abs(apart).max() < 0.3
    made.save(tmp_path)
    again = options.load(tmp_path)
    np.testing.assert_array_equal(again.features(stranger), made.features(stranger))
    assert again.content() == made.content()


def test_a_column_of_speakers(tmp_path: Path) -> None:
    for index, value in enumerate((SAMPLES, SAMPLES[:900], SAMPLES[:800])):
        (tmp_path / f"{index}.wav").write_bytes(wav(value))
    table = tmp_path / "t.tsv"
    table.write_text("file\tlabel\tvoice\n0.wav\ta\tAnn\n1.wav\tb\tBo\n2.wav\ta\tAnn\n")
    columns = {"source_column": "file", "target_column": "label"}
    pairs = ClassifyOptions().read(DataSpec(str(table), **columns, speaker_column="voice"))
    assert [pair.source.speaker.name for pair in pairs.pairs] == ["Ann", "Bo", "Ann"]
    assert pairs.pairs[0].source.speaker.sounds == [pairs.pairs[0].source, pairs.pairs[2].source]
    assert "2 speakers (--speaker-column voice)" in pairs.notes
    found = sound_stats([pair.source for pair in pairs.pairs], [pairs.pairs[0].source])
    assert found.speakers == {"Ann": 3, "Bo": 1} and found.overlap == 1
    assert found.seconds == [0.1, 0.113, 0.2]
    assert any(
        "speakers of the dev set also occur in train: Ann" in one for one in found.warnings()
    )


def test_checks_of_sounds() -> None:
    quiet = Sound((SAMPLES // 100).astype(np.int16), 8000, "quiet")
    clipped = Sound(np.clip(SAMPLES.astype(int) * 9, -32768, 32767).astype(np.int16), 8000, "clip")
    found = sound_stats([quiet, clipped, sound(31, 1000), sound(0.1), sound(0.1, 8000)], [])
    assert (found.quiet, found.first_quiet) == (1, "quiet")
    assert (found.clipped, found.first_clipped) == (1, "clip")
    assert (found.long, found.first_long) == (1, "31.wav")
    assert found.rates == {8000: 3, 1000: 1}
