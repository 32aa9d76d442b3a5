"""Sounds as sources: mono samples at a rate, from a file, from bytes or from an array.

T number of samples, C channels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from regard.core.errors import UserError
from regard.data.reading.media_source import MediaSource

MAX_SAMPLES = 1 << 28  # of one recording, more than an hour at 48 kHz
MAX_CHANNELS = 64
MIN_RATE, MAX_RATE = 1_000, 768_000  # Hz
FULL_SCALE = 32_768  # of 16-bit samples
BLOCK = 1 << 18  # samples that are converted at a time


class SoundSize(NamedTuple):
    """What a file declares: samples per channel, channels, and the rate in Hz."""

    samples: int
    channels: int
    rate: int


@dataclass(eq=False)
class Speaker:
    """A speaker and all recordings of a table that are theirs."""

    name: str
    sounds: list[Sound] = field(default_factory=list, repr=False)

    def recordings(self) -> Iterable[Sound]:
        """Return all recordings of the speaker."""
        return self.sounds

    @property
    def key(self) -> bytes:
        """Return bytes that differ between speakers in this process."""
        return str(id(self)).encode()


class Sound(MediaSource):
    """A source that is a sound: 16-bit mono samples (T,), their rate in Hz, a name for messages.

    Two sounds with the same samples and rate are equal, whatever their names.
    """

    def __init__(
        self, samples: np.ndarray, rate: int, name: str, speaker: Speaker | None = None
    ) -> None:
        assert samples.ndim == 1 and samples.dtype == np.int16
        self.samples = samples
        self.rate = rate
        self.name = name
        self.speaker = speaker

    @cached_property
    def content(self) -> bytes:
        """Return a hash of rate and samples."""
        found = hashlib.blake2b(str(self.rate).encode(), digest_size=16)
        found.update(np.ascontiguousarray(self.samples).data)
        return found.digest()

    @property
    def digest(self) -> bytes:
        """Return `content`, with the speaker if it is known: their statistics may be used."""
        return self.content if self.speaker is None else self.content + self.speaker.key

    @property
    def seconds(self) -> float:
        """Return the duration."""
        return len(self.samples) / self.rate

    @property
    def nbytes(self) -> int:
        """Return the size of the samples in memory."""
        return self.samples.nbytes

    def __len__(self) -> int:
        return len(self.samples)

    def __repr__(self) -> str:
        """Return duration, rate and a hash, which determine the split into training and dev set."""
        return f"Sound({self.seconds:.3f} s, {self.rate} Hz, {self.content.hex()})"


def check_rate(rate: Any, name: str) -> int:
    """Return a sampling rate as an integer; raise UserError if it is not one. name: of the file."""
    if isinstance(rate, bool) or not isinstance(rate, int | np.integer):
        raise UserError(
            f"{name}: expected a sampling rate in Hz, found {rate!r}", help="pass rate=16000"
        )
    if not MIN_RATE <= rate <= MAX_RATE:
        raise UserError(
            f"{name}: sampling rate of {rate:,} Hz: expected {MIN_RATE:,} to {MAX_RATE:,}",
            help="export the recording again",
        )
    return int(rate)


def check_count(name: str, count: int) -> None:
    """Raise UserError for too many samples. name: of the file, for the message."""
    if count > MAX_SAMPLES:
        raise UserError(
            f"{name}: recording of {count:,} samples: expected at most {MAX_SAMPLES:,}",
            help="cut the recording into parts",
        )


def check_audible(sound: Sound, cancel: str = "") -> Sound:
    """Return a sound. Raise UserError if it has no samples, or all of several are equal.

    cancel: how to keep one channel, if a channel is audible; empty otherwise.
    """
    if not len(sound):
        raise UserError(
            f"{sound.name}: the recording has no samples", help="record it again, or remove it"
        )
    if len(sound) == 1 or sound.samples.min() < sound.samples.max():
        return sound  # a single sample is too short, not silent
    if cancel:
        raise UserError(
            f"{sound.name}: the channels cancel out: their mean is {sound.samples[0]:,} in all "
            f"{len(sound):,} samples",
            help=f"keep one channel: {cancel}",
        )
    raise UserError(
        f"{sound.name}: the recording is silent: all {len(sound):,} samples are "
        f"{sound.samples[0]:,}",
        help="record it again (is the microphone muted?), or remove it",
    )


def from_array(array: Any, rate: Any, name: str) -> Sound:
    """Return the sound of an array (T,) or (T, C): 16-bit integers, or floats from -1 to 1."""
    rate = check_rate(rate, name)
    try:
        samples = np.asarray(array)
    except ValueError:
        raise UserError(
            f"{name}: expected samples (T,) or (T, channels), found parts of different lengths",
            help="pass one array per recording; channels are the last dimension",
        ) from None
    if samples.ndim not in (1, 2) or (
        samples.ndim == 2 and not 0 < samples.shape[1] <= MAX_CHANNELS
    ):
        raise UserError(
            f"{name}: expected samples (T,) or (T, channels), found shape {samples.shape}",
            help="pass one array per recording; channels are the last dimension",
        )
    check_count(name, len(samples))
    samples = as_int16(samples, name)
    if samples.ndim == 1:
        return check_audible(Sound(samples, rate, name))
    mono = quantize(samples.mean(1, np.float32) / FULL_SCALE)
    audible = np.flatnonzero((samples != samples[:1]).any(0))
    cancel = f"array[:, {audible[0]}]" if len(audible) else ""
    return check_audible(Sound(mono, rate, name), cancel)


def as_int16(samples: np.ndarray, name: str) -> np.ndarray:
    """Return samples as 16-bit integers: floats from -1 to 1 times 32,768."""
    if samples.dtype.newbyteorder("=") == np.int16:
        return samples.astype(np.int16, copy=False)
    if not np.issubdtype(samples.dtype, np.floating):
        raise UserError(
            f"{name}: expected 16-bit integers or floats from -1 to 1, found {samples.dtype}",
            help="divide by the largest possible value, such as 2147483648 for int32",
        )
    if not np.isfinite(samples).all():
        raise UserError(
            f"{name}: expected finite samples, found NaN or infinity",
            help="list them: np.argwhere(~np.isfinite(array))",
        )
    low, high = (samples.min(), samples.max()) if samples.size else (0.0, 0.0)
    if low < -1 or high > 1:
        raise UserError(
            f"{name}: expected floats from -1 to 1, found {low:g} to {high:g}",
            help="divide by the largest possible value, such as 32768 for 16-bit samples",
        )
    return quantize(samples)


def quantize(samples: np.ndarray) -> np.ndarray:
    """Return floats as 16-bit integers. Values beyond -1 to 1 are clipped."""
    scaled = np.rint(samples * np.float32(FULL_SCALE))
    return np.clip(scaled, -FULL_SCALE, FULL_SCALE - 1).astype(np.int16)
