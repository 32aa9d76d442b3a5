"""Sound files whose header and content differ: truncated, with other counts, or out of range."""

import io
import os
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.core.errors import UserError
from regard.data.reading.resample import resample
from regard.data.reading.sound_files import (
    MAX_FILE,
    declared_size,
    decode_sound,
    read_sound,
)
from regard.data.reading.sounds import from_array
from regard.inputs.sound_options import Sounds

soundfile = pytest.importorskip("soundfile")
SAMPLES = (np.sin(np.arange(4000) / 3) * 9000).astype(np.int16)
NOISE = np.random.default_rng(0).normal(0, 0.1, 24000)


def coded(form: str, kind: str | None = None, values: Any = SAMPLES) -> bytes:
    out = io.BytesIO()
    soundfile.write(out, values, 8000, format=form, subtype=kind)
    return out.getvalue()


def flac(count: int, kind: str = "PCM_16") -> bytes:
    """A FLAC file whose header declares this many samples."""
    data = bytearray(coded("FLAC", kind))
    data[21] = (data[21] & 0xF0) | count >> 32
    struct.pack_into(">I", data, 22, count & 0xFFFFFFFF)
    return bytes(data)


OGG, MP3 = coded("OGG", "VORBIS", NOISE), coded("MP3", None, NOISE)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (coded("AIFF")[:-900], "truncated AIFF file: the header declares 8,054 bytes, found 7,154"),
        (coded("AU")[:-900], "truncated AU file: the header declares 8,024 bytes, found 7,124"),
        (OGG[:-1], "truncated OGG file: its last page is missing"),
        (OGG[: OGG.rfind(b"OggS")], "truncated OGG file: its last page is missing"),
        (MP3[: len(MP3) // 2], "corrupted or truncated MP3 file: the header declares 24,000 samp"),
        (flac(9000), "corrupted or truncated FLAC file: the header declares 9,000 samples, found"),
        (flac(100), "corrupted FLAC file: the checksum in the header is not that of the 100 samp"),
        (flac(100, "PCM_24"), "corrupted FLAC file: the checksum"),
        (flac(100, "PCM_S8"), "corrupted FLAC file: the checksum"),
        (coded("WAV", "FLOAT", SAMPLES * 1.0), "expected floats from -1 to 1, found 8999"),
        (coded("WAV", "PCM_16", SAMPLES * 0 + 7), "the recording is silent: all 4,000 samples are"),
        (
            b"\xff\xfb\x90\x00" + b"\0" * 999,
            "corrupted or truncated MP3 file: it cannot be decoded",
        ),
        (b"\xff\xfb" + b"\0" * 999, r"expected a sound \(.*\), found other data"),
        ("\ufeffhello".encode("utf-16-le") * 50, r"expected a sound \(.*\), found text"),
        ("\ufeffhello".encode("utf-16-be") * 50, r"expected a sound \(.*\), found text"),
        (b"\0\0\0\x20ftypM4A " + b"\1" * 99, r"expected a sound \(.*\), found M4A or MP4"),
        (b"\x1aE\xdf\xa3" + b"\1" * 99, r"expected a sound \(.*\), found WebM or Matroska"),
    ],
)
def test_what_a_header_hides_is_an_error(data: bytes, message: str) -> None:
    with pytest.raises(UserError, match=f"^bad.x: {message}") as error:
        decode_sound(data, "bad.x")
    assert error.value.help


@pytest.mark.parametrize("kind", ["PCM_S8", "PCM_16", "PCM_24"])
def test_a_flac_without_a_count_is_read_to_its_end(kind: str) -> None:
    """As programs write that cannot go back in a pipe."""
    found = decode_sound(flac(0, kind), "a").samples.astype(int)
    assert len(found) == 4000 and abs(found - SAMPLES).max() <= (256 if kind == "PCM_S8" else 0)


def test_a_variable_bit_rate_needs_a_count() -> None:
    """Otherwise libsndfile estimates it by the first frame, and ignores what follows."""
    values = np.concatenate([NOISE, NOISE * 0, np.sin(np.arange(24000) / 5) / 2])
    for mode in ("VARIABLE", "CONSTANT"):
        out = io.BytesIO()
        options = {"bitrate_mode": mode, "compression_level": 0.5}
        soundfile.write(out, values, 8000, format="MP3", **options)
        data = out.getvalue()
        assert abs(len(decode_sound(data, "a").samples) - len(values)) <= 2304
        second = data.index(data[:2], 60)  # the first frame has the count
        if mode == "CONSTANT":
            assert abs(len(decode_sound(data[second:], "a").samples) - len(values)) <= 2304
            continue
        with pytest.raises(UserError, match=r"a\.mp3: MP3 file of variable bit rate.*\nhelp: conv"):
            decode_sound(data[second:], "a.mp3")


def test_missing_samples_of_an_mp3_are_counted() -> None:
    """Its last frame is not decoded if a byte is missing."""
    for data, missing in ((MP3, 0), (MP3[:-7], 337)):
        changes: Counter[str] = Counter()
        assert len(decode_sound(data, "a", changes)) == 24000 - missing
        assert changes["samples that MP3 files declare, not found"] == missing
    out, changes = io.BytesIO(), Counter()
    options = {"bitrate_mode": "CONSTANT", "compression_level": 0.5}
    soundfile.write(out, NOISE, 44100, format="MP3", **options)
    data = out.getvalue()
    decode_sound(data[data.index(data[:2], 60) :], "a", changes)
    assert not changes  # libsndfile estimates a count


def test_a_single_sample_is_too_short_not_silent() -> None:
    found = decode_sound(riff(b"\7\0", 2), "a")
    with pytest.raises(UserError, match="a: recording of 0 ms: expected at least one window"):
        Sounds().prepare(found, Counter())
    assert len(from_array(np.ones(1, np.int16), 8000, "a")) == 1


def test_channels_that_cancel_out() -> None:
    """They are not silent."""
    zero, keep = SAMPLES * 0, r"help: keep one channel: "
    opposite = np.stack([zero, SAMPLES, -SAMPLES], 1)
    message = r"^a.wav: the channels cancel out: their mean is 0 in all 4,000 samples\n" + keep
    for kind in ("PCM_16", "PCM_24", "FLOAT"):
        values = opposite / 32768 if kind == "FLOAT" else opposite
        command = r"ffmpeg -i a\.wav -af 'pan=mono\|c0=c1' mono\.wav"
        with pytest.raises(UserError, match=message + command):
            decode_sound(coded("WAV", kind, values), "a.wav")
    with pytest.raises(UserError, match=message + r"array\[:, 1\]"):
        from_array(opposite, 8000, "a.wav")
    silent = np.stack([zero, zero + 9], 1)
    for constant in (
        lambda: from_array(silent, 8000, "a"),
        lambda: decode_sound(coded("WAV", None, silent), "a"),
    ):
        with pytest.raises(UserError, match="a: the recording is silent"):
            constant()


def test_files_of_more_than_4_gb_declare_their_size_elsewhere() -> None:
    whole = coded("RF64")
    assert np.array_equal(decode_sound(whole, "a").samples, SAMPLES)
    with pytest.raises(UserError, match="truncated WAV file: the header declares 8,000 bytes"):
        decode_sound(whole[:-100], "a")


def test_floats_beyond_the_range_are_clipped_and_counted() -> None:
    changes: Counter[str] = Counter()
    found = decode_sound(coded("WAV", "FLOAT", SAMPLES / 6000), "a", changes)
    assert abs(found.samples.astype(int)).max() >= 32767
    assert changes == {"sounds with floats beyond -1 to 1, which are clipped": 1}


def test_bytes_after_the_samples_are_counted() -> None:
    metadata = b"LIST" + struct.pack("<I", 4) + b"INFO"
    again = b"data" + struct.pack("<I", 4) + b"\1\0\1\0"
    whole = coded("WAV")
    short = whole[:40] + struct.pack("<I", 3200) + whole[44:]
    for data, count in ((whole, 0), (whole + metadata, 0), (short, 1), (whole + again, 1)):
        changes: Counter[str] = Counter()
        decode_sound(data, "a", changes)
        assert sum(changes.values()) == count, changes


def test_a_large_file_is_rejected_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(coded("WAV"))
    os.truncate(path, MAX_FILE + 1)  # takes no space
    with pytest.raises(UserError, match=r"expected a sound of at most 1\.0 GB"):
        read_sound(str(path))
    (tmp_path / "b").symlink_to("c")
    with pytest.raises(UserError, match="broken link: c does not exist"):
        read_sound(str(tmp_path / "b"))


def riff(
    samples: bytes, size: int, rest: bytes = b"", channels: int = 1, rate: int = 8000
) -> bytes:
    """A WAV file whose header declares this many bytes of samples. rest: further chunks."""
    kind = struct.pack("<IHHIIHH", 16, 1, channels, rate, rate * 2 * channels, 2 * channels, 16)
    body = b"WAVEfmt " + kind + b"data" + struct.pack("<I", size) + samples + rest
    return b"RIFF" + struct.pack("<I", len(body)) + body


def chunk(name: bytes, size: int, padding: bytes = b"") -> bytes:
    return name + struct.pack("<I", size) + b"m" * size + padding


METADATA = chunk(b"LIST", 2000) + chunk(b"id3 ", 7, b"\0") + chunk(b"LIST", 0)


@pytest.mark.parametrize("size", [0, 0x7FFFFFFF, 0xFFFFFFFF])
def test_metadata_after_samples_of_unknown_size_is_not_read(size: int) -> None:
    """It would be noise."""
    values = SAMPLES.astype("<i2").tobytes()
    for rest in (b"", METADATA, METADATA[:-9], chunk(b"bext", 5)):
        changes: Counter[str] = Counter()
        found = decode_sound(riff(values, size, rest), "a", changes)
        assert np.array_equal(found.samples, SAMPLES) and not changes
        assert declared_size(riff(values, size, rest), "a") == (4000, 1, 8000)
        with pytest.raises(UserError, match="a: the recording has no samples"):
            decode_sound(riff(b"", size, rest), "a")
    assert len(decode_sound(riff(values, size, METADATA[:-12]), "a")) > 4000  # no chunks
    assert len(decode_sound(riff(values, size, b"x"), "a")) == 4000


def test_incomplete_samples_are_counted() -> None:
    """A part of the channels, or of the bytes of the last sample."""
    values = SAMPLES.astype("<i2").tobytes()
    incomplete = "WAV files whose last sample is incomplete, not read"
    for data in (riff(values + b"\1", 8001), riff(values + b"\1", 0xFFFFFFFF)):
        changes: Counter[str] = Counter()
        assert np.array_equal(decode_sound(data, "a", changes).samples, SAMPLES)
        assert changes == {incomplete: 1}
    changes = Counter()
    decode_sound(riff(values + b"\1\2", 8002, channels=2), "a", changes)
    assert changes[incomplete] == 1
    changes = Counter()
    decode_sound(riff(values, 8000, b"\1\2\3"), "a", changes)
    assert changes == {"WAV files with further bytes after their samples, not read": 1}


def test_a_resampled_sound_has_the_same_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rate of 1,000 Hz multiplies the samples by 16."""
    monkeypatch.setattr("regard.data.reading.sounds.MAX_SAMPLES", 4000)
    found = decode_sound(riff(SAMPLES.tobytes(), 8000, rate=1000), "a")
    with pytest.raises(UserError, match="a: at 16,000 Hz: recording of 64,000 samples: expected"):
        resample(found, 16_000)
