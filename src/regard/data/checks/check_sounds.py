"""Check sounds before training: durations, rates, quiet and clipped ones, speakers and copies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regard.core.formatting import count_noun, size
from regard.data.checks.check_frame import MediaStats
from regard.data.checks.copies import copy_warnings, find_copies
from regard.data.reading.sounds import FULL_SCALE, Sound

MAX_LISTED = 5  # rates and speakers that the report lists
QUIET = FULL_SCALE // 100  # largest sample of a recording that is almost silent: -40 dB
CLIPPED = 0.001  # fraction of samples at the limits of a clipped recording
LONG = 30.0  # seconds; long recordings take much memory and time


@dataclass
class SoundStats(MediaStats):
    """Statistics of the sounds of the training and the dev set, each sound counted once.

    seconds: minimum, median and maximum. rates: number of sounds by Hz. speakers: number of sounds
    by speaker, if known. quiet: sounds whose largest sample is below 1 % of the range. clipped:
    sounds with samples at its limits. long: sounds above 30 s. copies: sounds that equal an earlier
    sound of the training set. overlap: dev sounds that equal a training sound. shared_speakers:
    speakers of the dev set that are also in the training set. first_*: names of the first.
    """

    sounds: int
    dev_sounds: int
    total_seconds: float
    seconds: list[float]
    rates: dict[int, int]
    speakers: dict[str, int]
    shared_speakers: list[str]
    quiet: int
    first_quiet: str
    clipped: int
    first_clipped: str
    long: int
    first_long: str
    copies: int
    first_copy: list[str]
    overlap: int
    first_overlap: list[str]
    bytes: int

    def rows(self) -> list[tuple[str, str]]:
        low, middle, high = self.seconds
        rates = [f"{rate:,} Hz ({count:,})" for rate, count in self.rates.items()]
        speakers = [f"{name} ({count:,})" for name, count in self.speakers.items()]
        return [
            ("total duration", f"{self.total_seconds / 60:.1f} minutes"),
            ("seconds", f"{low:.2f} to {high:.2f}, median {middle:.2f}"),
            ("sampling rates", _list(rates)),
            *([("speakers", _list(speakers))] if speakers else []),
            ("almost silent", f"{self.quiet:,}"),
            ("clipped", f"{self.clipped:,}"),
            ("copies in train", f"{self.copies:,}"),
            ("dev sounds in train", f"{self.overlap:,} of {self.dev_sounds:,}"),
            ("memory", size(self.bytes)),
        ]

    def warnings(self) -> list[str]:
        found = []
        if len(self.rates) > 1:
            rates = ", ".join(f"{rate:,} Hz" for rate in self.rates)
            found.append(f"{len(self.rates)} sampling rates, which are converted to one: {rates}")
        if self.quiet:
            count = count_noun(self.quiet, "sound")
            found.append(f"{count} almost silent (below 1 % of the range): {self.first_quiet}")
        if self.clipped:
            count = count_noun(self.clipped, "clipped sound")
            found.append(f"{count} (samples at the limits), first: {self.first_clipped}")
        if self.long:
            count = count_noun(self.long, "sound")
            found.append(f"{count} longer than {LONG:g} s, first: {self.first_long}")
        found += copy_warnings(
            "sound",
            *(self.copies, self.first_copy, self.overlap, self.first_overlap, self.dev_sounds),
        )
        return [*found, *self._speaker_warnings()]

    def _speaker_warnings(self) -> list[str]:
        if not self.shared_speakers:
            return []
        names = _list(self.shared_speakers)
        return [
            f"speakers of the dev set also occur in train: {names}; the metrics do not show how "
            "well the model recognizes other speakers"
        ]


def sound_stats(train: Sequence[Sound], dev: Sequence[Sound]) -> SoundStats:
    """Return the statistics of sounds."""
    sounds, held = ({sound.name: sound for sound in some} for some in (train, dev))
    contents = ({name: one.content for name, one in some.items()} for some in (sounds, held))
    copies, overlap = find_copies(*contents)
    every = [*sounds.values(), *held.values()]
    quiet = [sound.name for sound in every if abs(sound.samples.astype(np.int32)).max() < QUIET]
    clipped = [sound.name for sound in every if _is_clipped(sound)]
    long = [sound.name for sound in every if sound.seconds > LONG]
    seconds = sorted(sound.seconds for sound in sounds.values())
    speakers = [
        {one.speaker.name for one in some.values() if one.speaker} for some in (sounds, held)
    ]
    return SoundStats(
        sounds=len(sounds),
        dev_sounds=len(held),
        total_seconds=round(sum(seconds), 3),
        seconds=[round(one, 3) for one in (seconds[0], float(np.median(seconds)), seconds[-1])],
        rates=dict(Counter(sound.rate for sound in every).most_common()),
        speakers=dict(Counter(one.speaker.name for one in every if one.speaker).most_common()),
        shared_speakers=sorted(speakers[0] & speakers[1]),
        quiet=len(quiet),
        first_quiet=quiet[0] if quiet else "",
        clipped=len(clipped),
        first_clipped=clipped[0] if clipped else "",
        long=len(long),
        first_long=long[0] if long else "",
        copies=len(copies),
        first_copy=copies[0] if copies else [],
        overlap=len(overlap),
        first_overlap=overlap[0] if overlap else [],
        bytes=sum(sound.nbytes for sound in every),
    )


def _is_clipped(sound: Sound) -> bool:
    """Return whether more than a few samples are at the limits of 16 bits."""
    limit = (sound.samples >= FULL_SCALE - 2) | (sound.samples <= 1 - FULL_SCALE)
    return bool(limit.mean() > CLIPPED)


def _list(values: Sequence[str]) -> str:
    more = f" and {len(values) - MAX_LISTED} more" if len(values) > MAX_LISTED else ""
    return ", ".join(values[:MAX_LISTED]) + more
