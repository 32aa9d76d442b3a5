"""Read sounds from files and from bytes, as mono samples of 16 bits. C channels."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import numpy as np

from regard.core.errors import UserError
from regard.core.formatting import size
from regard.data.reading.lines import missing_file, readable_os_errors
from regard.data.reading.media import Medium, suffix
from regard.data.reading.sound_decoder import Decoded, check_channels, decoded, decoded_size
from regard.data.reading.sound_media import START, SUFFIXES, check_media, sound_format
from regard.data.reading.sounds import (
    BLOCK,
    FULL_SCALE,
    Sound,
    SoundSize,
    check_audible,
    check_count,
    check_rate,
    quantize,
)
from regard.data.reading.wav import HELP, check_complete, has_more, wav_header, wav_values

MAX_FILE = 1024**3  # bytes of a sound file
LOUDEST = 10.0  # floats above this are not from -1 to 1 with some peaks, but integers


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
    values = _wav(data, name, changes) if found.name == "WAV" else None
    rate, blocks, channels = values or decoded(data, name, found, changes)
    parts, peak, cancel = [], 0.0, ""
    for block in blocks:
        peak = max(peak, _peak(block, name))
        parts.append(_mono(block))
        if channels > 1 and not cancel and (audible := _audible_channel(block)) is not None:
            cancel = f"ffmpeg -i {name} -af 'pan=mono|c0=c{audible}' mono.wav"
    if peak > 1 and not found.lossy:
        changes["sounds with floats beyond -1 to 1, which are clipped"] += 1
    samples = np.concatenate(parts) if parts else np.zeros(0, np.int16)
    if channels > 1:
        changes["stereo or multichannel recordings, channels averaged"] += 1
    return check_audible(Sound(samples, rate, name), cancel)


def declared_size(data: bytes, name: str, media: str | None = None) -> SoundSize:
    """Return the size that a file declares; nothing is decoded."""
    found = sound_format(data, name)
    check_media(found, media, name)
    if found.name == "WAV" and (header := wav_header(data, name)).is_plain:
        check_complete(data, header, name)
        rate = check_rate(header.rate, name)
        return SoundSize(header.size // header.frame, header.channels, rate)
    return decoded_size(data, name, found)


def _wav(data: bytes, name: str, changes: Counter[str]) -> Decoded | None:
    """Return the values of a plain WAV file; None if it needs a decoder."""
    header = wav_header(data, name)
    check_complete(data, header, name)
    if has_more(data, header):
        changes["WAV files with further bytes after their samples, not read"] += 1
    check_channels(header.channels, name)
    rate = check_rate(header.rate, name)
    if not header.is_plain:
        return None
    if header.size % header.frame:
        changes["WAV files whose last sample is incomplete, not read"] += 1
    values = wav_values(data, header)
    check_count(name, len(values))
    parts = (values[start : start + BLOCK] for start in range(0, len(values), BLOCK))
    return rate, parts, header.channels


def _peak(values: np.ndarray, name: str) -> float:
    """Return the largest absolute value of floats. Raise UserError if they cannot be samples."""
    if not np.issubdtype(values.dtype, np.floating) or not values.size:
        return 0.0
    if not np.isfinite(values).all():
        raise UserError(f"{name}: expected finite samples, found NaN or infinity", help=HELP)
    peak = float(max(values.max(), -values.min()))
    if peak > LOUDEST:
        raise UserError(
            f"{name}: expected floats from -1 to 1, found {peak:g}",
            help="divide by the largest possible value, such as 32768 for 16-bit samples",
        )
    return peak


def _mono(values: np.ndarray) -> np.ndarray:
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
    return quantize(floats.mean(1))


def _audible_channel(values: np.ndarray) -> int | None:
    """Return the first channel of values (T, C) that is not constant; None without any."""
    for channel in range(values.shape[1]):
        samples = _mono(values[:, channel : channel + 1])
        if samples.min() < samples.max():
            return channel
    return None


def read_sound(path: str, changes: Counter[str] | None = None) -> Sound:
    """Return the sound in a file. changes: counts what was converted."""
    if not Path(path).exists():
        raise UserError(missing_file(path))
    if Path(path).is_dir():
        raise UserError(
            f"{path}: expected a sound, found a folder",
            help="name a file; `regard predict RUN --input FOLDER` reads all files of a folder",
        )
    with readable_os_errors(path), open(path, "rb") as stream:
        large = os.fstat(stream.fileno()).st_size > MAX_FILE
        data = b"" if large else stream.read(MAX_FILE + 1)
    if large or len(data) > MAX_FILE:
        raise UserError(
            f"{path}: expected a sound of at most {size(MAX_FILE)}",
            help="cut the recording into parts",
        )
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
