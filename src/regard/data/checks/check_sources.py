"""Check pairs whose sources are not texts: sizes and lengths."""

from dataclasses import dataclass

import numpy as np

from regard.data.checks.check_frame import DataCheck

PERCENTILES = (50, 99, 100)


@dataclass
class SourceCheck(DataCheck):
    """The check of pairs whose sources are not texts. lengths: percentile to length."""

    pairs: int
    dev_pairs: int
    source: str
    source_lengths: dict[int, int]
    target_lengths: dict[int, int]

    def lines(self) -> list[str]:
        """Return the same lines as during training."""
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
    """Return the check of sources of this kind and their targets. lengths: (N, 2)."""
    source, target = (
        {p: int(np.percentile(side, p, method="lower")) for p in PERCENTILES} for side in lengths.T
    )
    return SourceCheck(len(lengths), dev_pairs, kind, source, target)
