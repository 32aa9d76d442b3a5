"""Check texts with their sounds before training: sizes, durations, speakers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.data.checks.check_frame import DataCheck, table
from regard.data.checks.check_sounds import sound_stats
from regard.data.reading.read import Pair


@dataclass
class SpokenCheck(DataCheck):
    """The result of checking synthesis data.

    texts: number of distinct texts. characters: of the texts, minimum, median and maximum. slowest,
    fastest: characters per second of the first and the last percentile.
    """

    examples: int
    dev_examples: int
    texts: int
    characters: list[int]
    slowest: float
    fastest: float

    def summary(self) -> list[str]:
        return [
            f"train {self.examples:,} sounds of {self.texts:,} texts, dev {self.dev_examples:,}"
        ]

    def sections(self) -> list[list[str]]:
        assert self.media is not None
        low, middle, high = self.characters
        rows = [
            ("train sounds", f"{self.examples:,}"),
            ("distinct texts", f"{self.texts:,}"),
            ("characters", f"{low:,} to {high:,}, median {middle:,}"),
            ("characters per second", f"{self.slowest:.1f} to {self.fastest:.1f} (98 %)"),
            *self.media.rows(),
        ]
        return [table(rows)]


def check_spoken(train: Sequence[Pair], dev: Sequence[Pair]) -> SpokenCheck:
    """Check the training and dev set of synthesis: texts and sounds."""
    sounds = [[pair.target for pair in pairs] for pairs in (train, dev)]
    media = replace(sound_stats(*sounds), shared_speakers=[])  # they must be known
    lengths = np.array([len(pair.source) for pair in train])
    speeds = lengths / np.array([pair.target.seconds for pair in train])
    slowest, fastest = (float(np.percentile(speeds, percent)) for percent in (1, 99))
    return SpokenCheck(
        examples=len(train),
        dev_examples=len(dev),
        texts=len({str(pair.source) for pair in train}),
        characters=[int(lengths.min()), int(np.median(lengths)), int(lengths.max())],
        slowest=round(slowest, 2),
        fastest=round(fastest, 2),
        media=media,
        warnings=media.warnings(),
    )
