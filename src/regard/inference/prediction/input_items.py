"""What is asked: lines, JSON objects with wishes, or sentences in the format of the input."""

import io
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, cast

from regard.core.errors import UserError, say
from regard.data.reading.lines import explain, open_bytes, read_lines, show_path
from regard.data.reading.read import Pair
from regard.data.reading.tagged import Sentence, read_sentences
from regard.inference.predictor import Predictor
from regard.storage.run_files import trained_on
from regard.tasks.tag import Tag
from regard.tasks.task import Prediction, Task
from regard.tasks.values import Request

COLUMNS = ("source_column", "target_column")
BLOCK = 1 << 20  # bytes read at once to count lines


@dataclass(frozen=True, slots=True)
class InputItem:
    """A source, and the text it was read from. render: writes its answer, where that is not
    simply a line; request: what is asked of its answer, where something is."""

    source: Any
    text: str
    render: Callable[[Prediction], str] | None = None
    request: Request | None = None


def texts_asked(task: Task, texts: Sequence[str]) -> Iterator[InputItem]:
    """The words of the command line."""
    for text in texts:  # those that are no UTF-8 arrive as half surrogate pairs
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise UserError(f"{text!r}: not UTF-8, which is expected on the command line")
    return iter([InputItem(task.parse(text), text) for text in texts])


def questions(
    predictor: Predictor,
    input: str,
    columns: tuple[str | None, str | None] = (None, None),
    quiet: bool = False,
) -> Iterator[InputItem]:
    """What is asked, as soon as it is there: lines, or sentences in the format of the input.

    quiet: what was recognised is not said.
    """
    task = predictor.task
    if not isinstance(task, Tag):
        if any(columns):
            raise UserError("--source-column, --target-column: only taggers read columns; cut them")
        return (_question(task, input, *row) for row in enumerate(lines_of(input), 1))
    trained = trained_on(predictor.folder)
    given = [one or trained.get(name) for one, name in zip(columns, COLUMNS, strict=True)]
    sentences, layout = read_sentences(input, *given)
    for note in () if quiet else layout.notes:
        say(note)

    def render(sentence: Sentence) -> Callable[[Prediction], str]:
        return lambda found: layout.render(sentence, found.value)

    return (InputItem(s.tokens, "\n".join(s.raw), render(s)) for s in sentences)


def _question(task: Task, input: str, number: int, line: str) -> InputItem:
    """A line as a question; where it cannot be read, its number is said."""
    try:
        return InputItem(task.parse(line), line)
    except UserError as error:
        raise UserError(f"{show_path(input)} line {number}: {error}") from error


def aligned_pairs(source: str, target: str) -> Iterator[InputItem]:
    """Sources with their targets, from two files, each as soon as it is there."""
    rows = zip_longest(read_lines(source), read_lines(target))
    for number, (left, right) in enumerate(rows, 1):
        if left is None or right is None:
            short, long = (source, target) if left is None else (target, source)
            raise UserError(f"{short}: ends after {number - 1:,} lines, {long} has more")
        yield InputItem(Pair(left, right, number), left + right)


def tabbed_pairs(texts: Sequence[str], input: str) -> Iterator[InputItem]:
    """Sources with their targets, from texts or else the lines of an input."""
    where = "text" if texts else f"{show_path(input)} line"
    for number, line in enumerate(texts or read_lines(input), 1):
        cells = line.split("\t")
        if len(cells) != 2:
            raise UserError(
                f"{where} {number}: source, tab, target expected, {len(cells) - 1} tabs found; or "
                "give --source FILE --target FILE"
            )
        yield InputItem(Pair(cells[0], cells[1], number), line)


def lines_of(input: str) -> Iterator[str]:
    """The lines of a file or of stdin, each as soon as it is there."""
    lines = read_lines(input)
    if input == "-":  # else Python, when it leaves while a thread waits for a line, would abort
        cast(io.TextIOWrapper, sys.stdin).detach()
    return lines


def is_whole(input: str) -> bool:
    """Whether all of the input is there, and can be read again: a file, no pipe."""
    try:
        return input != "-" and stat.S_ISREG(os.stat(input).st_mode)
    except OSError:
        return True  # what is wrong with it is said when it is opened


def count_lines(input: str) -> int:
    """The lines of a file, which is read through for that."""
    with explain(show_path(input)), open_bytes(input) as stream:
        count, last = 0, b"\n"
        while block := stream.read(BLOCK):
            count, last = count + block.count(b"\n"), block[-1:]
    return count + (last != b"\n")
