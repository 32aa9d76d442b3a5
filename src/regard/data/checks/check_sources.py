"""The check of pairs whose sources are no texts: how many there are, and how long."""

from dataclasses import asdict, dataclass, field

import numpy as np

SHARES = (50, 99, 100)


@dataclass
class SourceCheck:
    """What was found. lengths: by share of the examples, of sources and of targets."""

    pairs: int
    dev_pairs: int
    source: str
    source_lengths: dict[int, int]
    target_lengths: dict[int, int]
    warnings: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """All of it, ready for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The full report as plain text."""
        return self.short()

    def short(self) -> list[str]:
        """What matters during training."""
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
