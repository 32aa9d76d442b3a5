"""The check of pairs whose sources are no texts: how many there are, and how long."""

from dataclasses import dataclass

import numpy as np

from regard.data.checks.check_frame import DataCheck

SHARES = (50, 99, 100)


@dataclass
class SourceCheck(DataCheck):
    """What was found. lengths: by share of the examples, of sources and of targets."""

    pairs: int
    dev_pairs: int
    source: str
    source_lengths: dict[int, int]
    target_lengths: dict[int, int]

    def lines(self) -> list[str]:
        """The full report, which is no longer than what matters during training."""
        return self.short()

    def sections(self) -> list[list[str]]:
        return []

    def summary(self) -> list[str]:
        sides = {f"source: {self.source}": self.source_lengths, "target": self.target_lengths}
        return [
            f"train {self.pairs:,} pairs, dev {self.dev_pairs:,}",
            *(
                f"{name}, half up to {found[50]:,} long, 99 % up to {found[99]:,}, "
                f"longest {found[100]:,}"
                for name, found in sides.items()
            ),
        ]


def check_sources(kind: str, lengths: np.ndarray, dev_pairs: int) -> SourceCheck:
    """The figures of sources of a kind and their targets. lengths: (N, 2)."""
    source, target = (
        {share: int(np.percentile(side, share, method="lower")) for share in SHARES}
        for side in lengths.T
    )
    return SourceCheck(len(lengths), dev_pairs, kind, source, target)
