"""Check pairs whose sources are not texts (e.g. vectors): sizes and lengths."""

from dataclasses import dataclass

import numpy as np

from regard.data.checks.check_frame import DataCheck, MediaStats, table

PERCENTILES = (50, 99, 100)


@dataclass
class SourceCheck(DataCheck):
    """The result of checking pairs whose sources are not texts.

    source: kind of source. source_lengths, target_lengths: length at each percentile.
    """

    pairs: int
    dev_pairs: int
    source: str
    source_lengths: dict[int, int]
    target_lengths: dict[int, int]

    def lines(self) -> list[str]:
        """Return the summary, the warnings and the sections."""
        return [*self.short(), *(line for section in self.sections() for line in section)]

    def sections(self) -> list[list[str]]:
        return [["", *table(self.media.rows())]] if self.media else []

    def summary(self) -> list[str]:
        sides = {f"source: {self.source}": self.source_lengths, "target": self.target_lengths}
        if self.media:  # each source is one position
            sides = {"target": self.target_lengths}
        return [
            f"train {self.pairs:,} pairs, dev {self.dev_pairs:,}",
            *(
                f"{name}, length p50 {lengths[50]:,}, p99 {lengths[99]:,}, max {lengths[100]:,}"
                for name, lengths in sides.items()
            ),
        ]


def check_sources(
    kind: str, lengths: np.ndarray, dev_pairs: int, media: MediaStats | None = None
) -> SourceCheck:
    """Return the check of pairs. kind: kind of source. lengths: (N, 2), source and target.

    media: statistics of sources in files, if they are.
    """
    source, target = (
        {p: int(np.percentile(side, p, method="lower")) for p in PERCENTILES} for side in lengths.T
    )
    warnings = media.warnings() if media else []
    return SourceCheck(
        len(lengths), dev_pairs, kind, source, target, media=media, warnings=warnings
    )
