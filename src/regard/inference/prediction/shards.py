"""Shards of the input: one per process of each job of a job array."""

import re
from dataclasses import dataclass
from pathlib import Path

from regard.core import parallel
from regard.core.errors import UserError, warn


@dataclass(frozen=True)
class Shard:
    """A contiguous part of all sources: shard `number` (from 1) of `count` shards."""

    number: int = 1
    count: int = 1

    @classmethod
    def of(cls, shard: str | None) -> "Shard":
        """Return the shard of this process: its part of `--shard K/N`, or of the entire input."""
        number, count = 1, 1
        if shard is not None:
            match = re.fullmatch(r"(\d+)/(\d+)", shard)
            if not match or not 1 <= int(match[1]) <= int(match[2]):
                raise UserError(f"--shard {shard}: expected K/N with 1 <= K <= N, such as 3/16")
            number, count = int(match[1]), int(match[2])
        size = parallel.world_size()
        return cls((number - 1) * size + parallel.rank() + 1, count * size)

    def bounds(self, sources: int) -> tuple[int, int]:
        """Return the half-open range of source indices of this shard, given the total number."""
        return (self.number - 1) * sources // self.count, self.number * sources // self.count


def shard_path(output: Path, rank: int) -> Path:
    """Return the file to which a process writes its predictions.

    With one process it is the output file, otherwise OUTPUT.RANK-of-SIZE.
    """
    size = parallel.world_size()
    return output if size == 1 else output.with_name(f"{output.name}.{rank + 1}-of-{size}")


def warn_stale_shards(output: Path) -> None:
    """Warn if partial output of a run with another number of processes exists."""
    size, name = parallel.world_size(), re.escape(output.name)
    for path in sorted(output.parent.glob(f"{output.name}*.part")):
        match = re.fullmatch(rf"{name}(?:\.\d+-of-(\d+))?\.part", path.name)
        if match and int(match[1] or 1) != size and parallel.is_main_process():
            before = "1 process" if match[1] is None else f"{match[1]} processes"
            warn(
                f"{path}: partial output of a run with {before} (now {size}); ignored",
                help=f"delete it, or run with {before} to resume",
            )
            return
