"""Check pairs whose sources are not texts (e.g. vectors): sizes and lengths."""

from dataclasses import dataclass

import numpy as np

from regard.data.checks.check_frame import DataCheck

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
        """Return the summary and the warnings, because there are no sections."""
        return self.short()

    def sections(self) -> list[list[str]]:
        return []

    def summary(self) -> list[str]:
        sides = {f"source: {self.source}": self.source_lengths, "target": self.target_lengths}
        return [
            f"train {self.pairs:,} pairs, dev {self.dev_pairs:,}",
            *(
                f"{name}, length p50 {lengths[50]:,}, p99 {lengths[99]:,}, max {lengths[100]:,}"
                for name, lengths in sides.items()
            ),
        ]


def check_sources(kind: str, lengths: np.ndarray, dev_pairs: int) -> SourceCheck:
    """Return the check of pairs. kind: kind of source. lengths: (N, 2), source and target."""
    source, target = (
        {p: int(np.percentile(side, p, method="lower")) for p in PERCENTILES} for side in lengths.T
    )
    return SourceCheck(len(lengths), dev_pairs, kind, source, target)
