"""Sinks, to which predictions are written: stdout, a pipe, or a file.

A file is written as FILE.part and renamed when it is complete.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from regard.core import parallel
from regard.core.errors import UserError, info
from regard.inference.engine import Engine
from regard.inference.prediction.partial_file import PartialOutput, record_path
from regard.inference.prediction.prediction_warnings import PredictionWarnings
from regard.inference.prediction.shards import shard_path, warn_stale_shards
from regard.tasks.values import InputItem


@dataclass(frozen=True)
class StreamOutput:
    """A stream, such as stdout, to which predictions are written without delay."""

    file: TextIO
    done = 0  # a stream cannot resume, so no source is done at the start

    def write(self, window: list[InputItem], lines: list[str]) -> None:
        """Write the formatted predictions of a window of items."""
        self.file.writelines(lines)
        self.file.flush()


@contextlib.contextmanager
def open_output(
    output: Path | None,
    options: Callable[[], dict[str, Any]],
    warnings: PredictionWarnings,
    force: bool,
    engine: Engine | None = None,
) -> Iterator[StreamOutput | PartialOutput]:
    """Open the output inside the block. If the block succeeds, rename FILE.part to FILE.

    options: returns all options that determine the predictions. If an interrupted command had the
    same options, resume it with the same engine. force: discard its partial output instead.
    """
    if output is None:
        yield StreamOutput(sys.stdout)
        return
    if output.exists() and not output.is_file():  # /dev/null or a pipe
        with open(output, "w", encoding="utf-8", newline="\n") as file:
            yield StreamOutput(file)
        return
    warn_stale_shards(output)
    part = PartialOutput(shard_path(output, parallel.rank()), options(), warnings, force, engine)
    try:
        yield part
        _finish(part, output)
    except BaseException:
        if part.done:
            info(f"partial output in {part.path}; rerun the same command to resume")
        else:
            part.remove()
        raise
    finally:
        part.file.close()


def check_output(output: Path | None, input: str, force: bool) -> None:
    """Raise UserError if the output file cannot or must not be written, before any slow work.

    An existing file that is not empty is overwritten only with `force`, or to resume a command
    that was started with it. The input file is never overwritten.
    """
    if output is not None and output.is_dir():
        raise UserError(f"--output {output}: expected a file, found a folder")
    if output is not None and not output.parent.is_dir():
        raise UserError(f"--output {output}: the folder {output.parent} does not exist")
    if parallel.world_size() > 1 and (output is None or (output.exists() and not output.is_file())):
        raise UserError("several processes need an output file", help="use --output FILE")
    if output is None or not output.is_file():
        return
    if input != "-" and os.path.exists(input) and output.samefile(input):
        raise UserError(f"--output {output}: same file as --input", help="choose another name")
    is_resumed = record_path(shard_path(output, parallel.rank())).exists()
    if output.stat().st_size and not force and not is_resumed:
        raise UserError(
            f"--output {output}: the file exists",
            help="choose another name, or overwrite it with --force",
        )


def _finish(part: PartialOutput, output: Path) -> None:
    """Move the predictions of all processes to the output file, in order and atomically."""
    if parallel.world_size() == 1:
        os.replace(part.path, output)
    else:
        info("this process is done; waiting for the others")
        parallel.barrier()  # a process that failed terminates the others before this
        if parallel.is_main_process():
            _concatenate(
                [shard_path(output, rank) for rank in range(parallel.world_size())], output
            )
        parallel.barrier()
    part.remove()


def _concatenate(paths: list[Path], output: Path) -> None:
    """Concatenate the shards into one file, atomically."""
    temporary = output.with_name(f".{output.name}.{os.getpid()}.new")
    try:
        with open(temporary, "wb") as complete:
            for path in paths:
                with open(path.with_name(path.name + ".part"), "rb") as part:
                    shutil.copyfileobj(part, complete, 1 << 20)
            complete.flush()
            os.fsync(complete.fileno())
        os.replace(temporary, output)
    finally:
        temporary.unlink(missing_ok=True)
