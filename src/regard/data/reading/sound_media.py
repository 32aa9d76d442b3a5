"""Formats of sound files: MIME types, suffixes, and how their first bytes look."""

import codecs
import re
from pathlib import PurePath
from typing import NamedTuple

from regard.core.errors import UserError


class SoundFormat(NamedTuple):
    """A format.

    start: matches the first bytes. lossy: whether decoded samples may be beyond -1 to 1. slack:
    samples that may be missing.
    """

    name: str
    media: tuple[str, ...]
    suffixes: tuple[str, ...]
    start: re.Pattern[bytes]
    lossy: bool = False
    slack: int = 0


def _start(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern, re.DOTALL)


# Header of a frame: version not reserved, layer II or III, a bit rate and a sampling rate. Layer I
# is not read: it would match the byte order mark of UTF-16.
MP3_FRAME = rb"\xff[\xe2-\xe5\xf2-\xf5\xfa-\xfd][%s]" % b"".join(
    rb"\x%x0-\x%xb" % (speed, speed) for speed in range(1, 15)
)
FORMATS = (
    SoundFormat(
        "WAV",
        ("audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"),
        (".wav", ".wave"),
        _start(rb"(RIFF|RF64).{4}WAVE"),
    ),
    SoundFormat("FLAC", ("audio/flac", "audio/x-flac"), (".flac",), _start(rb"fLaC")),
    SoundFormat(
        "OGG", ("audio/ogg", "audio/opus"), (".ogg", ".oga", ".opus"), _start(rb"OggS"), True
    ),
    SoundFormat(
        "AIFF", ("audio/aiff", "audio/x-aiff"), (".aiff", ".aif"), _start(rb"FORM.{4}AIF[FC]")
    ),
    SoundFormat("AU", ("audio/basic",), (".au", ".snd"), _start(rb"\.snd")),
    SoundFormat(
        "MP3",
        ("audio/mpeg", "audio/mp3"),
        (".mp3",),
        _start(rb"ID3|" + MP3_FRAME),
        lossy=True,
        slack=2 * 1152,  # two frames, which encoders count or not
    ),
)
MEDIA = {media: one for one in FORMATS for media in one.media}
SUFFIXES = {suffix: one for one in FORMATS for suffix in one.suffixes}
START = _start(b"|".join(one.start.pattern for one in FORMATS))
NAMES = ", ".join(one.name for one in FORMATS)
OTHERS = {  # formats that are not read, and how they look
    "M4A or MP4": _start(rb".{4}ftyp"),
    "WebM or Matroska": _start(rb"\x1aE\xdf\xa3"),
    "WMA": _start(rb"0&\xb2u"),
    "CAF": _start(rb"caff"),
    "W64": _start(rb"riff\x2e\x91"),
    "AMR": _start(rb"#!AMR"),
}


def sound_format(data: bytes, name: str) -> SoundFormat:
    """Return the format of the bytes of a file. Raise UserError if it is no sound. name: of it."""
    if not data:
        raise UserError(
            f"{name}: the file is empty: expected a sound", help="copy or export it again"
        )
    for one in FORMATS:
        if one.start.match(data):
            return one
    for other, start in OTHERS.items():
        if start.match(data):
            raise UserError(
                f"{name}: expected a sound ({NAMES}), found {other}",
                help=f"convert it: ffmpeg -i {name} {PurePath(name).with_suffix('.wav')}",
            )
    kind = "text" if _is_text(data[:512]) else "other data, or a corrupted file"
    raise UserError(
        f"{name}: expected a sound ({NAMES}), found {kind}",
        help="convert the file, or remove it from the data",
    )


def _is_text(data: bytes) -> bool:
    """Return whether the first bytes of a file are a text in UTF-8, or in UTF-16 with a mark."""
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    decoder = codecs.getincrementaldecoder("utf-16" if is_wide else "utf-8")()
    try:
        return "\0" not in decoder.decode(data)
    except UnicodeDecodeError:
        return False


def check_media(found: SoundFormat, media: str | None, name: str) -> None:
    """Raise UserError if a sound of this format is declared as another MIME type.

    media: the declared type; None: none is declared.
    """
    if media is not None and media not in found.media:
        raise UserError(
            f"{name}: declared as {media}, but the content is {found.media[0]}",
            help=f"declare the type as {found.media[0]}",
        )
