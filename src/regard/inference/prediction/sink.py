"""Where predictions go: standard output, a pipe, or a file that takes its name when it is whole."""

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from regard.core import parallel
from regard.core.errors import UserError, info
from regard.inference.engine import Engine
from regard.inference.prediction.partial_file import PartFile
from regard.inference.prediction.prediction_warnings import Oddities
from regard.tasks.values import InputItem


@dataclass(frozen=True)
class Stream:
    """Predictions that are given away at once."""

    file: TextIO
    answered = 0  # before this command began

    def write(self, window: list[InputItem], lines: list[str]) -> None:
        """Add the predictions of a window."""
        self.file.writelines(lines)
        self.file.flush()


@contextlib.contextmanager
def opened(
    output: Path | None,
    asked: Callable[[], dict[str, Any]],
    odd: Oddities,
    force: bool,
    engine: Engine | None = None,
) -> Iterator[Stream | PartFile]:
    """Give the place for the predictions; a file that they fill has its name when this ends well.

    asked: all that they depend on, the sources apart; where an earlier command was stopped that
    was asked the same, it is continued, by the same engine. force: it is thrown away.
    """
    if output is None:
        yield Stream(sys.stdout)
        return
    if output.exists() and not output.is_file():  # /dev/null or a pipe
        with open(output, "w", encoding="utf-8", newline="\n") as file:
            yield Stream(file)
        return
    _note_leftovers(output)
    part = PartFile(_own_path(output, parallel.rank()), asked(), odd, force, engine)
    try:
        yield part
        _finish(part, output)
    except BaseException:
        if part.answered:
            info(f"the answers so far are in {part.path}; the same command goes on behind them")
        else:
            part.remove()
        raise
    finally:
        part.file.close()


def check_output(output: Path | None) -> None:
    """Refuse what cannot become a file of predictions, before anything slow is done."""
    if output is not None and output.is_dir():
        raise UserError(f"{output}: a folder, where a file for the answers is expected")
    if output is not None and not output.parent.is_dir():
        raise UserError(f"{output}: the folder {output.parent} does not exist")
    if parallel.size() > 1 and (output is None or (output.exists() and not output.is_file())):
        raise UserError("several processes write one file together: name it with --output FILE")


def _own_path(output: Path, rank: int) -> Path:
    """Return where a process keeps its predictions: with others beside the output."""
    size = parallel.size()
    return output if size == 1 else output.with_name(f"{output.name}.{rank + 1}-of-{size}")


def _finish(part: PartFile, output: Path) -> None:
    """Give the predictions of all processes, in order, the name of the output, at once."""
    if parallel.size() == 1:
        os.replace(part.path, output)
    else:
        info("this process is done; waiting for the others")
        parallel.wait()  # a process that failed never comes here, and ends the others
        if parallel.first():
            _join([_own_path(output, rank) for rank in range(parallel.size())], output)
        parallel.wait()
    part.remove()


def _join(paths: list[Path], output: Path) -> None:
    """Make one file of the parts, which appears when it is whole."""
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


def _note_leftovers(output: Path) -> None:
    """Say where predictions are that another number of processes began, and that nobody uses."""
    size, name = parallel.size(), re.escape(output.name)
    for path in sorted(output.parent.glob(f"{output.name}*.part")):
        match = re.fullmatch(rf"{name}(?:\.\d+-of-(\d+))?\.part", path.name)
        if match and int(match[1] or 1) != size and parallel.first():
            info(
                f"{path}: left by a command of {match[1] or 1} processes, this one has {size}; it "
                "is not used: delete it, or start as many processes as then"
            )
            return
