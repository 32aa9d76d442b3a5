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
METADATA = np.frombuffer(  # names of chunks that may follow samples of unknown size
    b"LISTid3 ID3 bextcue factsmplinstiXMLaxml_PMXJUNKPAD PEAKacidDISPcart", "<u4"
)
MAX_METADATA = 1 << 24  # bytes at the end of a file that are searched for such chunks
HELP = "copy or export the recording again"


class WavHeader(NamedTuple):
    """What the header of a WAV file declares.

    code: format of the samples. start: of the samples in the file. size: in bytes, as declared, or
    as found if it is unknown.
    """

    code: int
    channels: int
    rate: int
    bits: int
    start: int
    size: int

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
            if size in UNKNOWN_SIZES:
                size = _unknown_size(data, at + 8) if long is None else long
            return WavHeader(*found, at + 8, size)
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
    if present < header.size:
        raise UserError(
            f"{name}: truncated WAV file: the header declares {header.size:,} bytes of samples, "
            f"found {present:,}",
            help=HELP,
        )


def has_more(data: bytes, header: WavHeader) -> bool:
    """Return whether the samples are followed by bytes that are not chunks of metadata."""
    return not _are_chunks(data, header.start + header.size + header.size % 2)


def _are_chunks(data: bytes, at: int) -> bool:
    """Return whether the rest of a file, from here, is chunks of metadata, or nothing."""
    while at + 8 <= len(data):
        chunk, size = struct.unpack_from("<4sI", data, at)
        at += 8 + size + size % 2
        if chunk == b"data" or not all(32 <= one < 127 for one in chunk):
            return False
    return at in (len(data), len(data) + 1)  # the last byte of padding may be missing


def _unknown_size(data: bytes, start: int) -> int:
    """Return the bytes of samples whose size is unknown: up to metadata at the end of the file."""
    if _are_chunks(data, start):
        return 0
    first = max(start, len(data) - MAX_METADATA - len(data) % 2)
    words = np.frombuffer(data, "<u2", (len(data) - first) // 2, first).astype(np.uint32)
    is_name = np.isin(words[:-1] | words[1:] << 16, METADATA)
    ends = {len(data), len(data) + 1}
    for index in np.flatnonzero(is_name)[::-1].tolist():
        at = first + 2 * index
        size = int.from_bytes(data[at + 4 : at + 8], "little")
        if at + 8 + size + size % 2 in ends:
            ends.add(at)
    return min(ends) - start


def wav_values(data: bytes, header: WavHeader) -> np.ndarray:
    """Return the values (T, C) of a plain WAV file, as they are stored."""
    count = header.size // header.frame
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
