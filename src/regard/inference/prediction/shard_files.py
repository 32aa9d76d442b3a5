"""The share of a job array or of one of several processes: neighbouring sources, in their order."""

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from regard.core import parallel
from regard.core.errors import UserError, say
from regard.inference.prediction.partial_file import PartFile


@dataclass(frozen=True)
class Share:
    """Part `number` (from 1) of `parts` parts of all sources, one behind the other."""

    number: int = 1
    parts: int = 1

    @classmethod
    def of(cls, wish: str | None) -> "Share":
        """The share that `--shard` names, divided again over the processes of this job."""
        number, parts = 1, 1
        if wish is not None:
            match = re.fullmatch(r"(\d+)/(\d+)", wish)
            if not match or not 1 <= int(match[1]) <= int(match[2]):
                raise UserError(
                    f"--shard {wish}: NUMBER/PARTS expected, as 3/16: the third of sixteen parts"
                )
            number, parts = int(match[1]), int(match[2])
        size = parallel.size()
        return cls((number - 1) * size + parallel.rank() + 1, parts * size)

    def bounds(self, count: int) -> tuple[int, int]:
        """The first source of this part and the first behind it, of so many."""
        return (self.number - 1) * count // self.parts, self.number * count // self.parts


def own_path(output: Path) -> Path:
    """Where this process keeps its answers: beside the output, under a name of its own."""
    if parallel.size() == 1:
        return output
    return _path_of(output, parallel.rank())


def _path_of(output: Path, rank: int) -> Path:
    return output.with_name(f"{output.name}.{rank + 1}-of-{parallel.size()}")


def finish(part: PartFile, output: Path) -> None:
    """Gives the answers of all processes, in order, the name of the output, at once."""
    if parallel.size() == 1:
        os.replace(part.path, output)
        part.remove()
        return
    say("this process is done; waiting for the others")
    parallel.wait()  # a process that failed never comes here, and ends the others
    if parallel.first():
        _join([_path_of(output, rank) for rank in range(parallel.size())], output)
    parallel.wait()
    part.remove()


def _join(paths: list[Path], output: Path) -> None:
    """One file of the parts, which appears when it is whole."""
    beside = output.with_name(f".{output.name}.{os.getpid()}.new")
    try:
        with open(beside, "wb") as whole:
            for path in paths:
                with open(path.with_name(path.name + ".part"), "rb") as part:
                    shutil.copyfileobj(part, whole, 1 << 20)
            whole.flush()
            os.fsync(whole.fileno())
        os.replace(beside, output)
    finally:
        beside.unlink(missing_ok=True)


def note_leftovers(output: Path) -> None:
    """Says where answers lie that another number of processes began, and that nobody goes on."""
    size, name = parallel.size(), re.escape(output.name)
    for path in sorted(output.parent.glob(f"{output.name}*.part")):
        match = re.fullmatch(rf"{name}(?:\.\d+-of-(\d+))?\.part", path.name)
        if match and int(match[1] or 1) != size and parallel.first():
            say(
                f"{path}: left by a command of {match[1] or 1} processes, this one has {size}; it "
                "is not used: delete it, or start as many processes as then"
            )
            return
