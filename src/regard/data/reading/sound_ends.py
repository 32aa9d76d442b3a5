"""Sound files of which libsndfile reads only a part, without an error."""

import struct
from collections.abc import Iterator
from pathlib import PurePath

from regard.core.errors import UserError
from regard.data.reading.sound_media import SoundFormat
from regard.data.reading.wav import HELP

UNKNOWN_SIZE = 0xFFFFFFFF  # of an AU file that was written to a pipe
OGG_HEADER = 27  # bytes of the header of a page, before the sizes of its segments
LAST_PAGE = 4  # bit of the flags of a page
MP3_COUNTS = (b"Xing", b"Info", b"VBRI")  # marks of a count of samples in the first frame
MP3_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}  # Hz
MP3_SPEEDS = {  # kbit/s by the index in the header of a frame
    True: (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),  # version 1
    False: (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}


def check_end(data: bytes, found: SoundFormat, name: str) -> None:
    """Raise UserError if a file has fewer bytes than its header declares. name: of the file."""
    declared = {"AIFF": _aiff_size, "AU": _au_size}.get(found.name)
    if declared is not None and declared(data) > len(data):
        raise UserError(
            f"{name}: truncated {found.name} file: the header declares {declared(data):,} bytes, "
            f"found {len(data):,}",
            help=HELP,
        )
    if found.name == "MP3" and len(set(_mp3_speeds(data))) > 1:
        raise UserError(
            f"{name}: MP3 file of variable bit rate: expected a count of its samples in its first "
            "frame, found none",
            help=f"convert it: ffmpeg -i {name} {PurePath(name).with_suffix('.wav')}",
        )
    if found.name == "OGG" and not _has_last_page(data):
        raise UserError(f"{name}: truncated OGG file: its last page is missing", help=HELP)


def _aiff_size(data: bytes) -> int:
    """Return the end of the samples in an AIFF file; 0 if it has none."""
    at = 12
    while at + 8 <= len(data):
        chunk, size = struct.unpack_from(">4sI", data, at)
        if chunk == b"SSND":
            return at + 8 + int(size)
        at += 8 + size + size % 2
    return 0


def _au_size(data: bytes) -> int:
    """Return the end of the samples in an AU file; 0 if it is unknown."""
    if len(data) < 12:
        return 0
    start, size = struct.unpack_from(">II", data, 4)
    return 0 if size == UNKNOWN_SIZE else int(start) + int(size)


def _has_last_page(data: bytes) -> bool:
    """Return whether the last page of an OGG file is complete, and ends its stream."""
    at = data.rfind(b"OggS")
    if len(data) < at + OGG_HEADER:
        return False
    sizes = data[at + OGG_HEADER :][: data[at + OGG_HEADER - 1]]
    complete = len(data) >= at + OGG_HEADER + len(sizes) + sum(sizes)
    return complete and bool(data[at + 5] & LAST_PAGE)


def _first_frame(data: bytes) -> int:
    """Return where the first frame of an MP3 file starts."""
    if data[:3] != b"ID3" or len(data) <= 10:
        return 0
    return 10 + sum((data[6 + index] & 127) << 7 * (3 - index) for index in range(4))


def has_count(data: bytes) -> bool:
    """Return whether an MP3 file counts its samples in its first frame."""
    at = _first_frame(data)
    return any(mark in data[at : at + 64] for mark in MP3_COUNTS)


def _mp3_speeds(data: bytes) -> Iterator[int]:
    """Yield the bit rate of each frame of an MP3 file; none if it counts its samples."""
    if has_count(data):
        return
    at = _first_frame(data)
    while at + 4 <= len(data):
        sync, kind, sizes = data[at], data[at + 1], data[at + 2]
        version, speed, rate = kind >> 3 & 3, sizes >> 4, sizes >> 2 & 3
        is_frame = sync == 0xFF and kind & 0xE6 == 0xE2 and version != 1  # layer III
        if not is_frame or not 0 < speed < 15 or rate == 3:
            return
        bits = MP3_SPEEDS[version == 3][speed - 1] * 1000
        yield bits
        at += (144 if version == 3 else 72) * bits // MP3_RATES[version][rate] + (sizes >> 1 & 1)
