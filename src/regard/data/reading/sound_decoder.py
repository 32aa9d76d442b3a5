"""Sounds that libsndfile decodes, block by block, and compared with what their file declares."""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

from regard.core.errors import UserError
from regard.data.reading.sound_ends import check_end, has_count
from regard.data.reading.sound_media import SoundFormat
from regard.data.reading.sounds import BLOCK, MAX_CHANNELS, SoundSize, check_count, check_rate
from regard.data.reading.wav import HELP

UNKNOWN_COUNT = 1 << 40  # libsndfile reports at least this if a header has no count
INSTALL = "pip install 'regard[audio]'"
FLAC_SUM = slice(26, 42)  # MD5 of the samples, in the header of a FLAC file; zeros: unknown
FLAC_BYTES = {"PCM_S8": 1, "PCM_16": 2, "PCM_24": 3}  # per sample

Decoded = tuple[int, Iterator[np.ndarray], int]  # rate, blocks (T, C), channels


def decoded(data: bytes, name: str, found: SoundFormat, changes: Counter[str]) -> Decoded:
    """Return the values of a sound that libsndfile decodes, block by block.

    changes: counts samples that are missing.
    """
    opened = open_sound(data, name, found)
    check_end(data, found, name)
    check_channels(opened.channels, name)
    rate = check_rate(int(opened.samplerate), name)
    if opened.frames < UNKNOWN_COUNT:
        check_count(name, int(opened.frames))
    blocks = _blocks(opened, name, found)
    if found.name == "MP3" and has_count(data):  # otherwise libsndfile estimates it
        blocks = _counted(blocks, int(opened.frames), changes)
    if found.name == "FLAC" and any(data[FLAC_SUM]):
        blocks = _summed(blocks, FLAC_BYTES[opened.subtype], data[FLAC_SUM], name)
    return rate, blocks, int(opened.channels)


def decoded_size(data: bytes, name: str, found: SoundFormat) -> SoundSize:
    """Return the size that a file declares; nothing is decoded."""
    opened = open_sound(data, name, found)
    rate, channels = check_rate(int(opened.samplerate), name), int(opened.channels)
    if opened.frames >= UNKNOWN_COUNT:
        return SoundSize(len(data) // channels, channels, rate)
    return SoundSize(int(opened.frames), channels, rate)


def _blocks(opened: Any, name: str, found: SoundFormat) -> Iterator[np.ndarray]:
    """Yield the values (T, C) of an opened sound. Memory depends on the content, not the header."""
    dtype = {"PCM_16": "int16", "PCM_S8": "int32", "PCM_24": "int32"}.get(opened.subtype, "float32")
    total = 0
    while True:
        try:
            block = opened.read(BLOCK, dtype=dtype, always_2d=True)
        except MemoryError:
            raise
        except Exception as error:  # LibsndfileError, RuntimeError
            raise _corrupted(name, found, error) from None
        if not len(block):
            break
        total += len(block)
        check_count(name, total)
        yield block
    declared = int(opened.frames)
    if total + found.slack < declared < UNKNOWN_COUNT:
        raise UserError(
            f"{name}: corrupted or truncated {found.name} file: the header declares {declared:,} "
            f"samples, found {total:,}",
            help=HELP,
        )


def _counted(
    blocks: Iterator[np.ndarray], declared: int, changes: Counter[str]
) -> Iterator[np.ndarray]:
    """Yield the blocks of an MP3 file. Count the samples that it declares, but does not have."""
    total = 0
    for block in blocks:
        total += len(block)
        yield block
    if total < declared:
        changes["samples that MP3 files declare, not found"] += declared - total


def _summed(
    blocks: Iterator[np.ndarray], size: int, expected: bytes, name: str
) -> Iterator[np.ndarray]:
    """Yield the blocks of integers. Raise UserError if their MD5 is another one.

    size: bytes per sample. Without the sum, a header that declares too few samples hides the rest.
    """
    found, total = hashlib.md5(usedforsecurity=False), 0
    for block in blocks:
        width = block.dtype.itemsize  # the samples are in the highest bytes
        found.update(block.view(np.uint8).reshape(-1, width)[:, width - size :].tobytes())
        total += len(block)
        yield block
    if found.digest() != expected:
        raise UserError(
            f"{name}: corrupted FLAC file: the checksum in the header is not that of the {total:,} "
            "samples it declares",
            help=HELP,
        )


def open_sound(data: bytes, name: str, found: SoundFormat) -> Any:
    """Return a sound that libsndfile opened: header read, samples not decoded."""
    try:
        import soundfile
    except (ImportError, OSError):  # OSError: libsndfile is missing
        raise UserError(
            f"{name}: {found.name} files need the package soundfile, which is not installed; only "
            "plain WAV files are read without it",
            help=INSTALL,
        ) from None

    class Stream(soundfile.SoundFile):
        """A sound that is only read forwards: soundfile fails to seek beyond the last sample."""

        def seekable(self) -> bool:
            return False

    try:
        return Stream(io.BytesIO(data))
    except MemoryError:
        raise
    except Exception as error:
        raise _corrupted(name, found, error) from None


def _corrupted(name: str, found: SoundFormat, error: Exception) -> UserError:
    reason = str(error).rpartition("': ")[2].rpartition(": ")[2].rstrip(". ")
    if not reason or "does not exist" in reason:  # libsndfile for an MP3 file without frames
        reason = "it cannot be decoded"
    return UserError(f"{name}: corrupted or truncated {found.name} file: {reason}", help=HELP)


def check_channels(count: int, name: str) -> None:
    """Raise UserError for too many channels. name: of the file."""
    if count > MAX_CHANNELS:
        raise UserError(f"{name}: {count} channels: expected at most {MAX_CHANNELS}", help=HELP)
