"""Readers of the input of `regard predict`. They return items: sources with their input text.

The input is texts on the command line, lines, JSON objects with constraints, or tagger sentences.
"""

import io
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from typing import Any, cast

from regard.core.errors import UserError, info
from regard.core.limits import check_text_length, text_limit
from regard.data.reading.json_lines import name_of, parse_object, text_of
from regard.data.reading.lines import open_bytes, read_lines, readable_os_errors, show_path
from regard.data.sources.open import DataSpec
from regard.inputs.input import FileColumns, Input, NamedSources
from regard.storage.run_files import trained_columns, trained_on
from regard.tasks.task import Task
from regard.tasks.values import Constraints, InputItem

KEYS = ("source", "prefix", "require", "ban")
BLOCK_SIZE = 1 << 20  # bytes read at once to count lines


def text_items(task: Task, texts: Sequence[str]) -> Iterator[InputItem]:
    """Return one item per text on the command line."""
    for text in texts:  # Python decodes bytes that are not UTF-8 as lone surrogates
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise UserError(f"{text!r}: not UTF-8, which is expected on the command line")
    return (
        InputItem(task.parse(text), text, name=task.source.display_name(text)) for text in texts
    )


def file_items(
    predictor: Any,
    input: str,
    columns: tuple[str | None, str | None] = (None, None),
    quiet: bool = False,
) -> Iterator[InputItem]:
    """Return the items of an input file as they arrive: one per line, or as the task reads it.

    columns: source and target column of tagger files. quiet: do not print the detected format.
    """
    task: Task = predictor.task
    if task.by_line:
        if found := read_named(predictor, input, columns):
            return named_items(found, quiet)
        if any(columns):
            raise UserError("--source-column, --target-column: only supported for task tag")
        return (_line_item(task, input, *row) for row in enumerate(_lines(input), 1))
    trained = trained_on(predictor.folder)
    names = ("source_column", "target_column")
    selected = [one or trained.get(name) for one, name in zip(columns, names, strict=True)]
    items, notes = task.read_items(input, *selected)
    for note in () if quiet else notes:
        info(note)
    return items


def read_named(
    predictor: Any, input: str, columns: tuple[str | None, str | None]
) -> NamedSources | None:
    """Return the sources in an input that is no text, such as a folder; None for lines."""
    if input == "-":
        return None
    spec = trained_columns(DataSpec(input, source_column=columns[0]), predictor.folder)
    source: Input = predictor.task.source
    names = FileColumns(columns[0], spec.source_column, spec.speaker_column)
    return source.read_file(input, names)


def named_items(found: NamedSources, quiet: bool) -> Iterator[InputItem]:
    """Return an item per source of an input that is no text. quiet: do not print notes."""
    for note in () if quiet else found.notes:
        info(note)
    return (InputItem(found.read(name), name, name=name) for name in found.names)


def graph_items(predictor: Any, spec: DataSpec, quiet: bool = False) -> Iterator[InputItem]:
    """Return the items of a table of nodes with a table of edges: its nodes, or its graphs.

    Columns are those of the training data unless the user names others.
    """
    items, notes = predictor.task.graph_items(trained_columns(spec, predictor.folder))
    for note in () if quiet else notes:
        info(note)
    return cast(Iterator[InputItem], items)


def _line_item(task: Task, input: str, number: int, line: str) -> InputItem:
    """Return the item of a line. UserErrors name the file and the line number."""
    try:
        source = task.parse(task.source.locate(line, input))
        return InputItem(source, line, name=task.source.display_name(line))
    except UserError as error:
        raise error.at(f"{show_path(input)} line {number}") from error


def json_items(task: Any, input: str, common: Constraints) -> Iterator[InputItem]:
    """Yield one item per line, each a JSON object.

    common: constraints on all sources. A prefix in the JSON replaces the common prefix.
    """
    for number, line in enumerate(_lines(input), 1):
        try:
            source, constraints = _read(line, common)
            task.encode_constraints(constraints)
        except UserError as error:
            raise error.at(f"{show_path(input)} line {number}") from error
        except ValueError as error:
            raise UserError(f"{show_path(input)} line {number}: {error}") from error
        yield InputItem(source, line, constraints=constraints)


def _read(line: str, common: Constraints) -> tuple[str, Constraints]:
    """Parse a JSON object; return its source, and its constraints with `common` added."""
    record = parse_object(line)
    for key in record:
        if key not in KEYS:
            raise ValueError(f"expected the keys {', '.join(KEYS)}, found {key!r}")
    if "source" not in record:
        raise ValueError("the key 'source' is missing")
    prefix = text_of(record.get("prefix", common.prefix), "prefix")
    require, ban = (_words(record.get(key, []), key) for key in ("require", "ban"))
    source = text_of(record["source"], "source")
    return source, Constraints(prefix, (*common.require, *require), (*common.ban, *ban))


def _words(value: Any, key: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError(f"'{key}': expected a list of strings, found {name_of(value)}")
    return tuple(text_of(word, key) for word in value)


def _lines(input: str) -> Iterator[str]:
    """Return the lines of a file or of stdin, each as it arrives."""
    lines = read_lines(input)
    if input == "-":  # otherwise Python aborts at exit if a thread still waits for a line
        cast(io.TextIOWrapper, sys.stdin).detach()
    return _short_lines(input, lines)


def _short_lines(input: str, lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines; raise UserError at a line that is too long for any model."""
    limit = text_limit()
    for number, line in enumerate(lines, 1):
        where = f"{show_path(input)} line {number}: "
        check_text_length(where, "source", len(line), limit, "characters")
        yield line


def is_regular_file(input: str) -> bool:
    """Return whether the input is a regular file, which can be read twice, not a pipe."""
    try:
        return input != "-" and stat.S_ISREG(os.stat(input).st_mode)
    except OSError:
        return True  # a later open raises the error


def count_lines(input: str) -> int:
    """Return the number of lines of a file. Reads the entire file."""
    with readable_os_errors(show_path(input)), open_bytes(input) as stream:
        count, last = 0, b"\n"
        while block := stream.read(BLOCK_SIZE):
            count, last = count + block.count(b"\n"), block[-1:]
    return count + (last != b"\n")
