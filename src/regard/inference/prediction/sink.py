"""Where answers go: standard output, a pipe, or a file that takes its name when it is whole."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

from regard.core import parallel
from regard.core.errors import UserError, say
from regard.inference.engine import Engine
from regard.inference.prediction.input_items import InputItem
from regard.inference.prediction.partial_file import PartFile
from regard.inference.prediction.prediction_warnings import Oddities
from regard.inference.prediction.shard_files import finish, note_leftovers, own_path


class Stream:
    """Answers that are given away at once."""

    answered = 0  # before this command began

    def __init__(self, file: TextIO) -> None:
        self.file = file

    def unanswered(self, questions: Iterator[InputItem], input: str) -> Iterator[InputItem]:
        """All."""
        return questions

    def write(self, window: list[InputItem], lines: list[str]) -> None:
        """Adds the answers of a window."""
        self.file.writelines(lines)
        self.file.flush()


Sink = Stream | PartFile


@contextlib.contextmanager
def opened(
    output: Path | None,
    asked: Callable[[], dict[str, Any]],
    odd: Oddities,
    force: bool,
    engine: Engine | None = None,
) -> Iterator[Sink]:
    """The place for the answers; a file that they fill has its name when this ends well.

    asked: all that they depend on, the sources apart; where an earlier command was stopped that
    was asked the same, its answers are gone on with, by the same engine. force: they are thrown
    away.
    """
    if output is None:
        yield Stream(sys.stdout)
        return
    if output.exists() and not output.is_file():  # /dev/null or a pipe
        with open(output, "w", encoding="utf-8", newline="\n") as file:
            yield Stream(file)
        return
    note_leftovers(output)
    part = PartFile(own_path(output), asked(), odd, force, engine)
    try:
        yield part
        finish(part, output)
    except BaseException:
        if part.answered:
            say(f"the answers so far are in {part.path}; the same command goes on behind them")
        else:
            part.remove()
        raise
    finally:
        part.close()


def check_output(output: Path | None) -> None:
    """Refuses what cannot become a file of answers, before anything slow is done."""
    if output is not None and output.is_dir():
        raise UserError(f"{output}: a folder, where a file for the answers is expected")
    if output is not None and not output.parent.is_dir():
        raise UserError(f"{output}: the folder {output.parent} does not exist")
    if parallel.size() > 1 and (output is None or (output.exists() and not output.is_file())):
        raise UserError("several processes write one file together: name it with --output FILE")
