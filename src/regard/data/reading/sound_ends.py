"""Ends of sound files that libsndfile reads without an error although they are truncated."""

import struct

from regard.core.errors import UserError
from regard.data.reading.sound_media import SoundFormat
from regard.data.reading.wav import HELP

UNKNOWN_SIZE = 0xFFFFFFFF  # of an AU file that was written to a pipe
OGG_HEADER = 27  # bytes of the header of a page, before the sizes of its segments
LAST_PAGE = 4  # bit of the flags of a page


def check_end(data: bytes, found: SoundFormat, name: str) -> None:
    """Raise UserError if a file has fewer bytes than its header declares. name: of the file."""
    declared = {"AIFF": _aiff_size, "AU": _au_size}.get(found.name)
    if declared is not None and declared(data) > len(data):
        raise UserError(
            f"{name}: truncated {found.name} file: the header declares {declared(data):,} bytes, "
            f"found {len(data):,}",
            help=HELP,
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
