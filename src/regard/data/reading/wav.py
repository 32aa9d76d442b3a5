"""Plain WAV files, read and written without a package. T samples per channel, C channels."""

from __future__ import annotations

import io
import struct
import wave
from typing import NamedTuple

import numpy as np

from regard.core.errors import UserError

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
UNKNOWN_SIZES = (0, 0x7FFFFFFF, 0xFFFFFFFF)  # of files that were written to a pipe
WORDS = {(PCM, 8): "u1", (PCM, 16): "<i2", (PCM, 32): "<i4", (FLOAT, 32): "<f4", (FLOAT, 64): "<f8"}
HELP = "copy or export the recording again"


class WavHeader(NamedTuple):
    """What the header of a WAV file declares.

    code: format of the samples. start: of the samples in the file. size: in bytes, as declared;
    None: unknown.
    """

    code: int
    channels: int
    rate: int
    bits: int
    start: int
    size: int | None

    @property
    def is_plain(self) -> bool:
        """Return whether samples are numbers that need no decoder."""
        return (self.code, self.bits) in WORDS or (self.code, self.bits) == (PCM, 24)

    @property
    def frame(self) -> int:
        """Return the bytes of one sample of all channels."""
        return self.channels * self.bits // 8


def wav_header(data: bytes, name: str) -> WavHeader:
    """Return what the header of a WAV file declares. Raise UserError if it is corrupted."""
    found: tuple[int, int, int, int] | None = None
    long: int | None = None  # the size in a file of more than 4 GB
    at = 12
    while at + 8 <= len(data):
        chunk, size = struct.unpack_from("<4sI", data, at)
        body = data[at + 8 : at + 8 + min(size, 40)]
        if chunk == b"fmt ":
            found = _format(body, name)
        elif chunk == b"ds64" and len(body) >= 16:
            (long,) = struct.unpack_from("<Q", body, 8)
        elif chunk == b"data":
            if found is None:
                break
            return WavHeader(*found, at + 8, long if size in UNKNOWN_SIZES else size)
        at += 8 + size + size % 2
    raise UserError(
        f"{name}: corrupted or truncated WAV file: no {'samples' if found else 'format'} in it",
        help=HELP,
    )


def _format(body: bytes, name: str) -> tuple[int, int, int, int]:
    """Return code, channels, rate and bits in a format chunk."""
    if len(body) < 16:
        raise UserError(f"{name}: corrupted WAV file: the format is too short", help=HELP)
    code, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
    if code == EXTENSIBLE and len(body) >= 26:
        (code,) = struct.unpack_from("<H", body, 24)
    if not channels:
        raise UserError(f"{name}: corrupted WAV file: it has no channels", help=HELP)
    return code, channels, rate, bits


def check_complete(data: bytes, header: WavHeader, name: str) -> None:
    """Raise UserError if a WAV file has fewer bytes than its header declares."""
    present = len(data) - header.start
    if header.size is not None and present < header.size:
        raise UserError(
            f"{name}: truncated WAV file: the header declares {header.size:,} bytes of samples, "
            f"found {present:,}",
            help=HELP,
        )


def has_more(data: bytes, header: WavHeader) -> bool:
    """Return whether the samples are followed by bytes that are not chunks of metadata."""
    if header.size is None:
        return False
    at = header.start + header.size + header.size % 2
    while at + 8 <= len(data):
        chunk, size = struct.unpack_from("<4sI", data, at)
        at += 8 + size + size % 2
        if chunk == b"data" or not all(32 <= one < 127 for one in chunk) or at > len(data) + 1:
            return True
    return False


def wav_values(data: bytes, header: WavHeader) -> np.ndarray:
    """Return the values (T, C) of a plain WAV file, as they are stored."""
    size = len(data) - header.start if header.size is None else header.size
    count = size // header.frame
    stored = memoryview(data)[header.start : header.start + count * header.frame]
    if header.bits == 24:
        return _three_bytes(stored).reshape(count, header.channels)
    word = WORDS[header.code, header.bits]
    return np.frombuffer(stored, word).reshape(count, header.channels)


def _three_bytes(stored: memoryview) -> np.ndarray:
    """Return 24-bit integers as 32-bit ones of the same amplitude."""
    found = np.zeros((len(stored) // 3, 4), np.uint8)
    found[:, 1:] = np.frombuffer(stored, np.uint8).reshape(-1, 3)
    return found.view("<i4")[:, 0]


def wav_bytes(samples: np.ndarray, rate: int) -> bytes:
    """Return 16-bit samples as a WAV file."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return out.getvalue()
