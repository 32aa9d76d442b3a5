"""Read sounds from files and from bytes, as mono samples of 16 bits. C channels."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.core.formatting import size
from regard.data.reading.lines import missing_file, readable_os_errors
from regard.data.reading.media import Medium, suffix
from regard.data.reading.sound_media import (
    START,
    SUFFIXES,
    SoundFormat,
    check_media,
    sound_format,
)
from regard.data.reading.sounds import (
    BLOCK,
    FULL_SCALE,
    MAX_CHANNELS,
    Sound,
    check_audible,
    check_count,
    check_rate,
    quantize,
)
from regard.data.reading.wav import HELP, check_complete, wav_header, wav_values

MAX_FILE = 1024**3  # bytes of a sound file
UNKNOWN_COUNT = 1 << 40  # libsndfile reports at least this if a header has no count
INSTALL = "pip install 'regard[audio]'"


def decode_sound(
    data: bytes, name: str, changes: Counter[str] | None = None, media: str | None = None
) -> Sound:
    """Return the sound in the bytes of a file. Only plain WAV needs no package.

    changes: counts what was converted. media: the MIME type that the file must have.
    """
    changes = Counter() if changes is None else changes
    found = sound_format(data, name)
    check_media(found, media, name)
    expected = SUFFIXES.get(suffix(name))
    if expected not in (None, found):
        changes[f"sounds named {suffix(name)}, read as {found.name}"] += 1
    values = _wav(data, name) if found.name == "WAV" else None
    rate, blocks, channels = values or _decoded(data, name, found)
    parts = [_mono(block, name) for block in blocks]
    samples = np.concatenate(parts) if parts else np.zeros(0, np.int16)
    if channels > 1:
        changes["stereo or multichannel recordings, channels averaged"] += 1
    return check_audible(Sound(samples, rate, name))


def declared_samples(data: bytes, name: str, media: str | None = None) -> int:
    """Return the samples of all channels that a file declares; nothing is decoded."""
    found = sound_format(data, name)
    check_media(found, media, name)
    if found.name == "WAV" and (header := wav_header(data, name)).is_plain:
        check_complete(data, header, name)
        count = len(data) - header.start if header.size is None else header.size
        return count * 8 // header.bits
    opened = _open(data, name, found)
    if opened.frames >= UNKNOWN_COUNT:
        return len(data)
    return int(opened.frames) * int(opened.channels)


Decoded = tuple[int, Iterator[np.ndarray], int]  # rate, blocks (T, C), channels


def _wav(data: bytes, name: str) -> Decoded | None:
    """Return the values of a plain WAV file; None if it needs a decoder."""
    header = wav_header(data, name)
    check_complete(data, header, name)
    _check_channels(header.channels, name)
    rate = check_rate(header.rate, name)
    if not header.is_plain:
        return None
    values = wav_values(data, header)
    check_count(name, len(values))
    parts = (values[start : start + BLOCK] for start in range(0, len(values), BLOCK))
    return rate, parts, header.channels


def _decoded(data: bytes, name: str, found: SoundFormat) -> Decoded:
    """Return the values of a sound that libsndfile decodes, block by block."""
    opened = _open(data, name, found)
    _check_channels(opened.channels, name)
    rate = check_rate(int(opened.samplerate), name)
    declared = int(opened.frames)
    if declared < UNKNOWN_COUNT:
        check_count(name, declared)
    return rate, _blocks(opened, name, found, declared), int(opened.channels)


def _blocks(opened: Any, name: str, found: SoundFormat, declared: int) -> Iterator[np.ndarray]:
    """Yield the values (T, C) of an opened sound. Memory depends on the content, not the header."""
    total = 0
    while True:
        try:
            block = opened.read(BLOCK, dtype="float32", always_2d=True)
        except MemoryError:
            raise
        except Exception as error:  # LibsndfileError, RuntimeError
            raise _corrupted(name, found, error) from None
        if not len(block):
            break
        total += len(block)
        check_count(name, total)
        yield block
    if found.exact and total < declared < UNKNOWN_COUNT:
        raise UserError(
            f"{name}: truncated {found.name} file: the header declares {declared:,} samples, found "
            f"{total:,}",
            help=HELP,
        )


def _open(data: bytes, name: str, found: SoundFormat) -> Any:
    """Return a sound that libsndfile opened: header read, samples not decoded."""
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: libsndfile is missing
        raise UserError(
            f"{name}: {found.name} files need the package soundfile, which is not installed; only "
            "plain WAV files are read without it",
            help=INSTALL,
        ) from None
    try:
        return soundfile.SoundFile(io.BytesIO(data))
    except MemoryError:
        raise
    except Exception as error:
        raise _corrupted(name, found, error) from None


def _corrupted(name: str, found: SoundFormat, error: Exception) -> UserError:
    reason = str(error).rpartition("': ")[2].rpartition(": ")[2].rstrip(". ")
    return UserError(f"{name}: corrupted or truncated {found.name} file: {reason}", help=HELP)


def _check_channels(count: int, name: str) -> None:
    if count > MAX_CHANNELS:
        raise UserError(f"{name}: {count} channels: expected at most {MAX_CHANNELS}", help=HELP)


def _mono(values: np.ndarray, name: str) -> np.ndarray:
    """Return values (T, C) as 16-bit samples (T,), the mean of the channels."""
    floats: np.ndarray
    if values.dtype == np.int16 and values.shape[1] == 1:
        return values[:, 0].astype(np.int16)
    if values.dtype == np.uint8:
        floats = (values.astype(np.float32) - 128) / 128
    elif np.issubdtype(values.dtype, np.integer):
        scale = FULL_SCALE if values.dtype == np.int16 else 1 << 31
        floats = values.astype(np.float32) / np.float32(scale)
    else:
        floats = values.astype(np.float32, copy=False)
        if not np.isfinite(floats).all():
            raise UserError(f"{name}: expected finite samples, found NaN or infinity", help=HELP)
    return quantize(floats.mean(1))


def read_sound(path: str, changes: Counter[str] | None = None) -> Sound:
    """Return the sound in a file. changes: counts what was converted."""
    if not Path(path).exists():
        raise UserError(missing_file(path))
    if Path(path).is_dir():
        raise UserError(f"{path}: expected a sound, found a folder")
    with readable_os_errors(path), open(path, "rb") as stream:
        data = stream.read(MAX_FILE + 1)
    if len(data) > MAX_FILE:
        raise UserError(f"{path}: expected a sound of at most {size(MAX_FILE)}")
    return decode_sound(data, path, changes)


SOUNDS = Medium(
    name="sound",
    columns=frozenset({"sound", "audio", "recording", "wav", "clip"}),
    suffixes=frozenset(SUFFIXES),
    start=START,
    read=read_sound,
    type=Sound,
    convert=lambda value, name: value if isinstance(value, Sound) else None,
    reduce="use a lower rate: --set task.source.rate=8000",
)
